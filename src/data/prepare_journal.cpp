#include "data/prepare_journal.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/fingerprint.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kVersion = 1;
constexpr const char* kPlanFile = "plan.json";
constexpr const char* kJournalFile = "journal.json";

std::string text_of(const json& root) { return root.dump(1, ' ', false, json::error_handler_t::replace) + "\n"; }

/// Reads a file of ours; whatever is wrong with it means that there is none.
template <class Function>
auto read_json(const fs::path& path, Function convert) -> std::optional<decltype(convert(json()))> {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  try {
    json root = json::parse(read_file(path));
    if (root.at("version") != kVersion) return std::nullopt;
    return convert(root);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

json place_json(const PreparePlace& place) { return {place.file, place.part, place.tokens, place.separate}; }

PreparePlace place_of(const json& place) { return {place.at(0), place.at(1), place.at(2), place.at(3)}; }

PreparePlan plan_of(const json& root) {
  PreparePlan plan;
  plan.options = root.at("options").get<std::map<std::string, std::string>>();
  for (const json& input : root.at("inputs"))
    plan.inputs.push_back(
        {{input.at("path"), input.at("bytes"), input.at("checksum")}, input.at("modified").get<int64_t>()});
  return plan;
}

PrepareJournal journal_of(const json& root) {
  PrepareJournal journal;
  for (const json& shard : root.at("shards"))
    journal.shards.push_back({shard.at("file"), shard.at("tokens"), shard.at("max_token"), shard.at("checksum")});
  journal.text_bytes = root.at("text_bytes");
  journal.documents = root.at("documents");
  journal.files = root.at("files");
  journal.place = place_of(root.at("place"));
  for (const json& move : root.at("moves")) journal.moves.push_back({move.at(0), move.at(1)});
  return journal;
}

}  // namespace

PreparePlan::Input plan_input(const fs::path& path) {
  if (!fs::is_regular_file(path)) return {{path.string(), 0, ""}, 0};
  return {fingerprint_file(path), int64_t(fs::last_write_time(path).time_since_epoch().count())};
}

std::string plan_difference(const PreparePlan& before, const PreparePlan& now) {
  for (const auto& [name, value] : now.options) {
    auto old = before.options.find(name);
    if (old == before.options.end()) return name + " is new";
    if (old->second != value) return name + " is " + value + ", was " + old->second;
  }
  if (before.inputs.size() != now.inputs.size())
    return "there are " + std::to_string(now.inputs.size()) + " input files, there were " +
           std::to_string(before.inputs.size());
  for (size_t i = 0; i < now.inputs.size(); ++i) {
    const auto &old = before.inputs[i], &input = now.inputs[i];
    if (old.file.path != input.file.path) return "the input has " + input.file.path + " where it had " + old.file.path;
    if (old != input) return input.file.path + " has changed";
  }
  return "";
}

void write_plan(const PreparePlan& plan, const fs::path& folder) {
  json inputs = json::array();
  for (const PreparePlan::Input& input : plan.inputs)
    inputs.push_back({{"path", input.file.path},
                      {"bytes", input.file.bytes},
                      {"checksum", input.file.checksum},
                      {"modified", input.modified}});
  json root = {{"version", kVersion}, {"options", plan.options}, {"inputs", inputs}};
  write_shared_file(folder / kPlanFile, text_of(root));  // unsynced: losing it costs a new beginning only
}

void write_journal(const PrepareJournal& journal, const fs::path& folder) {
  json shards = json::array(), moves = json::array();
  for (const ShardInfo& shard : journal.shards)
    shards.push_back(
        {{"file", shard.file}, {"tokens", shard.tokens}, {"max_token", shard.max_token}, {"checksum", shard.checksum}});
  for (const PrepareJournal::Move& move : journal.moves) moves.push_back({move.from, move.to});
  json root = {{"version", kVersion},
               {"shards", shards},
               {"text_bytes", journal.text_bytes},
               {"documents", journal.documents},
               {"files", journal.files},
               {"place", place_json(journal.place)},
               {"moves", moves}};
  write_file_atomic(folder / kJournalFile, text_of(root));
}

void remove_journal(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / kJournalFile, error);
  if (error) file_error("remove", folder / kJournalFile, error.value());
}

std::optional<PreparePlan> read_plan(const fs::path& folder) { return read_json(folder / kPlanFile, plan_of); }

std::optional<PrepareJournal> read_journal(const fs::path& folder) {
  return read_json(folder / kJournalFile, journal_of);
}

}  // namespace tokamak
