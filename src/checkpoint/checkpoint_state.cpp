#include "checkpoint/checkpoint_state.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/checkpoint_tensors.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "tokamak-checkpoint";
// Since version 2 a file may have no checksum as a whole; who reads version 1 alone must not take that for damage.
constexpr int kVersion = 2, kFirstVersion = 1;

int version_of(const CheckpointRecord& record) {
  bool has_all = std::ranges::none_of(record.files, [](const FileRecord& file) { return file.checksum.empty(); });
  return has_all ? kFirstVersion : kVersion;
}

std::string checksum_of(std::string_view text) { return format_checksum(checksum(std::as_bytes(std::span(text)))); }

std::string render(const ordered_json& root) { return format_json(root, 2) + "\n"; }

[[noreturn]] void refuse(const fs::path& path, std::string_view expected, std::string_view got) {
  user_error("[checkpoint] {}: expected {}, got {}; the checkpoint is damaged: use an older one beside it",
             path.string(), expected, got);
}

// Only the text that write_record made passes, byte for byte, so no flipped bit goes unseen.
void check_text(const fs::path& path, std::string_view text, ordered_json root) {
  std::string expected = format_json(root.value("checksum", ordered_json("no checksum")));
  ordered_json unsigned_root = root;
  unsigned_root.erase("checksum");
  std::string got = ordered_json(checksum_of(render(unsigned_root))).dump();
  if (got != expected) refuse(path, fmt::format("checksum {}", expected), got);
  if (text != render(root)) refuse(path, "the text as it was written", "other white space");
}

// More than any run has, and few enough that no sum of them overflows.
constexpr int64_t kMostSteps = int64_t(1) << 38, kMostCounted = int64_t(1) << 59;

ordered_json to_json(const KnownGoodState& good) {
  const LossBand& band = good.band;
  return {{"step", good.step},     {"losses", band.losses}, {"mean", band.mean},
          {"lowest", band.lowest}, {"change", band.change}, {"last", band.last}};
}

// What is no integer of 64 bits would be made one.
int64_t whole(const ordered_json& root, const char* name, const fs::path& path) {
  const ordered_json& value = root.at(name);
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
    refuse(path, fmt::format("a whole number as {}", name), format_json(value));
  return value.get<int64_t>();
}

KnownGoodState good_from(const ordered_json& root, const fs::path& path) {
  return {whole(root, "step", path),
          {whole(root, "losses", path), root.at("mean").get<double>(), root.at("lowest").get<double>(),
           root.at("change").get<double>(), root.at("last").get<double>()}};
}

ordered_json to_json(const CheckpointRecord& record) {
  const CheckpointState& state = record.state;
  ordered_json files = ordered_json::object();
  for (const FileRecord& file : record.files) {
    files[file.name] = {{"bytes", file.bytes}};
    if (!file.checksum.empty()) files[file.name]["checksum"] = file.checksum;
    if (!file.header.empty()) files[file.name]["header"] = file.header;
    if (!file.tensors.empty()) files[file.name]["tensors"] = file.tensors;
  }
  ordered_json config = parse_ordered_json(state.config_json);
  TOKAMAK_CHECK(config.is_object(), "the configuration is no JSON object: {}", state.config_json);
  ordered_json root = {{"format", kFormat},  {"version", version_of(record)}, {"serial", record.serial},
                       {"step", state.step}, {"tokens", state.tokens},        {"data_position", state.data_position},
                       {"seed", state.seed}, {"tokenizer", state.tokenizer},  {"files", files},
                       {"config", config}};
  if (!state.data_json.empty()) root["data"] = parse_ordered_json(state.data_json);
  if (!state.ledger.empty()) root["ledger"] = state.ledger;
  if (!state.validation.empty()) root["validation"] = state.validation;
  if (state.good != KnownGoodState()) root["good"] = to_json(state.good);
  if (state.best > 0) root["best"] = state.best;
  if (state.is_extra) root["extra"] = true;
  return root;
}

void check_count(const fs::path& path, const char* name, int64_t count, int64_t most) {
  if (count < 0 || count > most) refuse(path, fmt::format("{} from 0 to {}", name, most), fmt::format("{}", count));
}

// No file but ours is opened.
void check_record(const fs::path& path, const CheckpointRecord& record) {
  const CheckpointState& state = record.state;
  check_count(path, "serial", record.serial, kMostCounted);
  check_count(path, "step", state.step, kMostSteps);
  check_count(path, "tokens", state.tokens, kMostCounted);
  check_count(path, "data_position", state.data_position, kMostCounted);
  check_count(path, "seed", state.seed, INT64_MAX);
  check_count(path, "the step of the checkpoint known to be good", state.good.step, state.step);
  check_count(path, "the step of the best checkpoint", state.best, state.step);
  check_count(path, "losses", state.good.band.losses, kMostSteps);
  for (const FileRecord& file : record.files)
    if (file.name != kModelFile && file.name != kOptimizerFile)
      refuse(path, fmt::format("the files {} and {}", kModelFile, kOptimizerFile), fmt::format("'{}'", file.name));
  for (const FileRecord& file : record.files)
    if (file.checksum.empty() && (file.header.empty() || file.tensors.empty()))
      refuse(path, fmt::format("checksums of {}", file.name), "none");
  if (record.files.size() != 2) refuse(path, "two files", fmt::format("{}", record.files.size()));
}

CheckpointRecord record_from_json(const ordered_json& root, const fs::path& path) {
  CheckpointRecord record;
  record.serial = whole(root, "serial", path);
  record.state = {.step = whole(root, "step", path),
                  .tokens = whole(root, "tokens", path),
                  .data_position = whole(root, "data_position", path),
                  .seed = whole(root, "seed", path),
                  .config_json = format_json(root.at("config")),
                  .tokenizer = root.at("tokenizer").get<std::string>(),
                  .data_json = root.contains("data") ? format_json(root["data"]) : "",
                  .ledger = root.value("ledger", ""),
                  .validation = root.value("validation", ""),
                  .good = root.contains("good") ? good_from(root["good"], path) : KnownGoodState(),
                  .best = root.contains("best") ? whole(root, "best", path) : 0,
                  .is_extra = root.value("extra", false)};
  for (const auto& [name, file] : root.at("files").items())
    record.files.push_back({name, whole(file, "bytes", path), file.value("checksum", ""),
                            file.value("tensors", std::map<std::string, std::string>()), file.value("header", "")});
  return record;
}

}  // namespace

void write_record(const fs::path& folder, const CheckpointRecord& record) {
  ordered_json root = to_json(record);
  root["checksum"] = checksum_of(render(root));
  write_file_atomic(folder / kStateFile, render(root));
}

CheckpointRecord read_record(const fs::path& folder) {
  fs::path path = folder / kStateFile;
  MappedFile file(path);
  std::string_view text = file.text();
  ordered_json root = parse_ordered_json(text);
  if (!root.is_object())
    refuse(path, "a JSON object", text.empty() ? "an empty file" : "text that is no JSON object" + json_error(text));
  check_text(path, text, root);
  ordered_json version = root.value("version", ordered_json());
  if (root.value("format", ordered_json()) != kFormat || (version != kFirstVersion && version != kVersion))
    user_error("[checkpoint] {}: expected format {} version {}, got {} version {}; use the program that wrote it",
               path.string(), kFormat, kVersion, format_json(root.value("format", ordered_json())),
               format_json(version));
  try {
    CheckpointRecord record = record_from_json(root, path);
    check_record(path, record);
    return record;
  } catch (const nlohmann::json::exception& error) {
    refuse(path, "every field of its version", error.what());
  }
}

}  // namespace tokamak
