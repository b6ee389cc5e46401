#include "train/checkpoint_state.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "train/checkpoint_tensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "tokamak-checkpoint";
constexpr int kVersion = 1;

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

ordered_json to_json(const CheckpointRecord& record) {
  const CheckpointState& state = record.state;
  ordered_json files = ordered_json::object();
  for (const FileRecord& file : record.files) files[file.name] = {{"bytes", file.bytes}, {"checksum", file.checksum}};
  ordered_json config = parse_ordered_json(state.config_json);
  TOKAMAK_CHECK(config.is_object(), "the configuration is no JSON object: {}", state.config_json);
  ordered_json root = {{"format", kFormat},  {"version", kVersion},          {"serial", record.serial},
                       {"step", state.step}, {"tokens", state.tokens},       {"data_position", state.data_position},
                       {"seed", state.seed}, {"tokenizer", state.tokenizer}, {"files", files},
                       {"config", config}};
  if (!state.data_json.empty()) root["data"] = parse_ordered_json(state.data_json);
  return root;
}

// Nothing counts below 0, and no file but ours is opened.
void check_record(const fs::path& path, const CheckpointRecord& record) {
  const CheckpointState& state = record.state;
  if (std::min({record.serial, state.step, state.tokens, state.data_position, state.seed}) < 0)
    refuse(path, "counts of at least 0", "a negative one");
  for (const FileRecord& file : record.files)
    if (file.name != kModelFile && file.name != kOptimizerFile)
      refuse(path, fmt::format("the files {} and {}", kModelFile, kOptimizerFile), fmt::format("'{}'", file.name));
  if (record.files.size() != 2) refuse(path, "two files", fmt::format("{}", record.files.size()));
}

CheckpointRecord from_json(const ordered_json& root) {
  CheckpointRecord record;
  record.serial = root.at("serial").get<int64_t>();
  record.state = {.step = root.at("step").get<int64_t>(),
                  .tokens = root.at("tokens").get<int64_t>(),
                  .data_position = root.at("data_position").get<int64_t>(),
                  .seed = root.at("seed").get<int64_t>(),
                  .config_json = format_json(root.at("config")),
                  .tokenizer = root.at("tokenizer").get<std::string>(),
                  .data_json = root.contains("data") ? format_json(root["data"]) : ""};
  for (const auto& [name, file] : root.at("files").items())
    record.files.push_back({name, file.at("bytes").get<int64_t>(), file.at("checksum").get<std::string>()});
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
  if (!root.is_object()) refuse(path, "a JSON object", text.empty() ? "an empty file" : "text that is no JSON object");
  check_text(path, text, root);
  if (root.value("format", ordered_json()) != kFormat || root.value("version", ordered_json()) != kVersion)
    user_error("[checkpoint] {}: expected format {} version {}, got {} version {}; use the program that wrote it",
               path.string(), kFormat, kVersion, format_json(root.value("format", ordered_json())),
               format_json(root.value("version", ordered_json())));
  try {
    CheckpointRecord record = from_json(root);
    check_record(path, record);
    return record;
  } catch (const nlohmann::json::exception& error) {
    refuse(path, "every field of version 1", error.what());
  }
}

void verify_file(const MappedFile& file, const FileRecord& record) {
  const fs::path& path = file.path();
  if (int64_t(file.bytes().size()) != record.bytes)
    refuse(path, fmt::format("{} bytes", record.bytes), fmt::format("{}", file.bytes().size()));
  constexpr size_t kPiece = size_t(4) << 20;
  Checksum sum;
  for (std::span<const std::byte> left = file.bytes(); !left.empty();
       left = left.subspan(std::min(kPiece, left.size()))) {
    std::span<const std::byte> piece = left.first(std::min(kPiece, left.size()));
    sum.update(piece);
    file.release(piece);
  }
  std::string got = format_checksum(sum.digest());
  if (got != record.checksum) refuse(path, fmt::format("checksum {}", record.checksum), got);
}

}  // namespace tokamak
