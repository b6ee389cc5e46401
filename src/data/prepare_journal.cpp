#include "data/prepare_journal.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "data/fingerprint.h"
#include "data/json_fields.h"
#include "data/prepare_names.h"
#include "data/token_shard_index.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kJournalVersion = 2;
constexpr const char* kPlanFormat = "tokamak-prepare-plan";
constexpr const char* kJournalFormat = "tokamak-prepare-journal";

/// Reads a file of ours; whatever is wrong with it means that there is none.
template <class Function>
auto read_sealed(const fs::path& path, const char* format, Function convert)
    -> std::optional<decltype(convert(std::declval<JsonFields>()))> {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::string text = read_file(path, kLargeFile);
  try {
    JsonFields fields(text, path.string(), "it is damaged");
    fields.require_format(format, kJournalVersion);
    fields.require_seal();
    return convert(fields);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

PreparePlan plan_of(const JsonFields& fields) {
  PreparePlan plan;
  for (const JsonFields& option : fields.objects("options")) plan.options[option.text("name")] = option.text("value");
  for (const JsonFields& input : fields.objects("inputs"))
    plan.inputs.push_back(
        {{input.text("path"), input.number("bytes"), input.text("checksum")}, input.text("modified")});
  return plan;
}

json to_json(const Int64LogState& log) { return {{"size", log.size}, {"checksum", log.checksum}}; }

Int64LogState log_of(const JsonFields& fields) { return {fields.number("size"), fields.text("checksum")}; }

json to_json(const PreparePlace& place) {
  return {{"file", place.file}, {"part", place.part}, {"tokens", place.tokens}, {"separate", int(place.separate)}};
}

PreparePlace place_of(const JsonFields& fields) {
  return {fields.number("file"), fields.number("part"), fields.number("tokens"), fields.number("separate", 1) == 1};
}

PrepareJournal::Move move_of(const JsonFields& fields) {
  PrepareJournal::Move move = {fields.text("from"), fields.text("to"), fields.text("checksum")};
  if (!may_move(move.from, move.to)) fields.refuse("from", "a file that `prepare` makes");
  return move;
}

PrepareJournal journal_of(const JsonFields& fields) {
  PrepareJournal journal;
  for (const JsonFields& file : fields.objects("tokenizer"))
    journal.tokenizer.push_back({file.text("file"), file.text("checksum")});
  for (const JsonFields& file : fields.objects("shards")) {
    TokenShardInfo shard = {file.text("file"), file.number("tokens"), file.number("max_token"), file.text("checksum")};
    if (shard.file != shard_name(unfinished::kTokens, journal.shards.size())) file.refuse("file", "the next shard");
    journal.shards.push_back(shard);
  }
  journal.text_bytes = fields.number("text_bytes");
  journal.documents = log_of(fields.object("documents"));
  journal.files = log_of(fields.object("files"));
  journal.place = place_of(fields.object("place"));
  for (const JsonFields& move : fields.objects("moves")) journal.moves.push_back(move_of(move));
  if (!journal.moves.empty() && journal.moves.back().to != kIndexFile) fields.refuse("moves", "the index at the end");
  return journal;
}

bool has_log(const fs::path& path, const Int64LogState& state) {
  try {
    Int64Log(path, state);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

PreparePlan::Input plan_input(const fs::path& path) {
  if (!fs::is_regular_file(path)) return {{path.string(), 0, ""}, ""};
  return {fingerprint_file(path), std::to_string(fs::last_write_time(path).time_since_epoch().count())};
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
  json options = json::array(), inputs = json::array();
  for (const auto& [name, value] : plan.options) options.push_back({{"name", name}, {"value", value}});
  for (const PreparePlan::Input& input : plan.inputs)
    inputs.push_back({{"path", input.file.path},
                      {"bytes", input.file.bytes},
                      {"checksum", input.file.checksum},
                      {"modified", input.modified}});
  json root = {{"format", kPlanFormat}, {"version", kJournalVersion}, {"options", options}};
  root["inputs"] = std::move(inputs);  // of millions of files, of which a copy would be felt
  write_shared_file(folder / unfinished::kPlan,
                    seal_json(std::move(root)));  // unsynced: losing it costs a new beginning only
}

void write_journal(const PrepareJournal& journal, const fs::path& folder) {
  json tokenizer = json::array(), shards = json::array(), moves = json::array();
  for (const FileChecksum& file : journal.tokenizer)
    tokenizer.push_back({{"file", file.file}, {"checksum", file.checksum}});
  for (const TokenShardInfo& shard : journal.shards)
    shards.push_back(
        {{"file", shard.file}, {"tokens", shard.tokens}, {"max_token", shard.max_token}, {"checksum", shard.checksum}});
  for (const PrepareJournal::Move& move : journal.moves)
    moves.push_back({{"from", move.from}, {"to", move.to}, {"checksum", move.checksum}});
  json root = {{"format", kJournalFormat},
               {"version", kJournalVersion},
               {"tokenizer", tokenizer},
               {"shards", shards},
               {"text_bytes", journal.text_bytes},
               {"documents", to_json(journal.documents)},
               {"files", to_json(journal.files)},
               {"place", to_json(journal.place)},
               {"moves", moves}};
  write_file_atomic(folder / unfinished::kJournal, seal_json(root));
}

void remove_journal(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / unfinished::kJournal, error);
  if (error) file_error("remove", folder / unfinished::kJournal, error.value());
}

std::optional<PreparePlan> read_plan(const fs::path& folder) {
  return read_sealed(folder / unfinished::kPlan, kPlanFormat, plan_of);
}

std::optional<PrepareJournal> read_journal(const fs::path& folder) {
  return read_sealed(folder / unfinished::kJournal, kJournalFormat, journal_of);
}

bool has_journal(const fs::path& folder) { return fs::exists(folder / unfinished::kJournal); }

fs::path find_damage(const PrepareJournal& journal, const fs::path& folder, const std::function<void()>& pause) {
  std::vector<FileChecksum> files;
  for (const FileChecksum& file : journal.tokenizer)
    files.push_back({fs::path(unfinished::kTokenizer) / file.file, file.checksum});
  for (const TokenShardInfo& shard : journal.shards) files.push_back({shard.file, shard.checksum});
  for (const FileChecksum& file : files) {
    pause();
    if (!has_checksum(folder / file.file, file.checksum, kMostShardBytes)) return folder / file.file;
  }
  pause();
  if (!has_log(folder / unfinished::kDocuments, journal.documents)) return folder / unfinished::kDocuments;
  if (!has_log(folder / unfinished::kFiles, journal.files)) return folder / unfinished::kFiles;
  return {};
}

}  // namespace tokamak
