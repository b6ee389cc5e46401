#include "data/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kFormat = "tokamak-tokens";
constexpr int kVersion = 1;

json to_json(const SplitIndex& split) {
  json shards = json::array();
  for (const ShardInfo& shard : split.shards)
    shards.push_back(
        {{"file", shard.file}, {"tokens", shard.tokens}, {"max_token", shard.max_token}, {"checksum", shard.checksum}});
  json sources = json::array();
  for (const FileFingerprint& file : split.sources)
    sources.push_back({{"path", file.path}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  return {{"documents", split.documents},
          {"text_bytes", split.text_bytes},
          {"tokens", split.tokens()},
          {"shards", shards},
          {"sources", sources}};
}

/// Reads fields of the index; each error names the file and the field.
class Reader {
 public:
  explicit Reader(const fs::path& path) : name_(path.string()) {}

  int64_t number(const json& object, const char* key) const {
    json value = get(object, key);
    if (!value.is_number_integer() || value.get<int64_t>() < 0) refuse(key, "a whole number, at least 0", value);
    return value.get<int64_t>();
  }

  std::string text(const json& object, const char* key) const {
    json value = get(object, key);
    if (!value.is_string()) refuse(key, "a string", value);
    return value.get<std::string>();
  }

  json list(const json& object, const char* key) const {
    json value = get(object, key);
    if (!value.is_array()) refuse(key, "a list", value);
    return value;
  }

  SplitIndex split(const json& root, const char* key) const {
    json object = get(root, key);
    if (!object.is_object()) refuse(key, "an object", object);
    SplitIndex split;
    split.documents = number(object, "documents");
    split.text_bytes = number(object, "text_bytes");
    for (const json& shard : list(object, "shards"))
      split.shards.push_back(
          {text(shard, "file"), number(shard, "tokens"), number(shard, "max_token"), text(shard, "checksum")});
    if (!object.contains("sources")) return split;  // written by an earlier version
    for (const json& file : list(object, "sources"))
      split.sources.push_back({text(file, "path"), number(file, "bytes"), text(file, "checksum")});
    return split;
  }

  [[noreturn]] void refuse(const char* key, const char* expected, const json& got) const {
    user_error("[data] {}: expected {} as `{}`, got {}; the index is damaged: run `prepare` again", name_, expected,
               key, got.is_null() ? "nothing" : got.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
  }

 private:
  static json get(const json& object, const char* key) {
    return object.is_object() ? object.value(key, json()) : json();
  }

  std::string name_;
};

}  // namespace

int64_t SplitIndex::tokens() const {
  int64_t sum = 0;
  for (const ShardInfo& shard : shards) sum += shard.tokens;
  return sum;
}

int64_t SplitIndex::max_token() const {
  int64_t max = 0;
  for (const ShardInfo& shard : shards) max = std::max(max, shard.max_token);
  return max;
}

bool is_prepared(const fs::path& path) { return fs::is_directory(path) && fs::exists(path / kIndexFile); }

void require_finished(const fs::path& path) {
  if (is_prepared(path) || !fs::is_directory(path / kUnfinishedFolder)) return;
  user_error(
      "[data] {}: expected data that is finished, got {} without {}: `tokamak prepare` was interrupted there, or is "
      "still at work; run the same `tokamak prepare` command again, which goes on from there",
      path.string(), kUnfinishedFolder, kIndexFile);
}

ShardIndex read_shard_index(const fs::path& folder) {
  require_finished(folder);
  fs::path path = folder / kIndexFile;
  if (!fs::exists(path))
    user_error("[data] expected {} in the data folder {}, got none; make the data with `tokamak prepare`", kIndexFile,
               folder.string());
  json root = json::parse(read_file(path), nullptr, false);
  Reader reader(path);
  if (!root.is_object())
    reader.refuse("index", "a JSON object", root.is_discarded() ? json("text that is no JSON") : root);
  if (reader.text(root, "format") != kFormat) reader.refuse("format", kFormat, root["format"]);
  if (reader.number(root, "version") != kVersion) reader.refuse("version", "1", root["version"]);
  ShardIndex index;
  index.vocab_size = reader.number(root, "vocab_size");
  index.end_of_text = reader.number(root, "end_of_text");
  index.train = reader.split(root, "train");
  index.val = reader.split(root, "val");
  return index;
}

std::string format_shard_index(const ShardIndex& index) {
  json root = {{"format", kFormat},
               {"version", kVersion},
               {"vocab_size", index.vocab_size},
               {"end_of_text", index.end_of_text},
               {"train", to_json(index.train)},
               {"val", to_json(index.val)}};
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";  // paths may hold any bytes
}

void write_shard_index(const ShardIndex& index, const fs::path& folder) {
  write_file_atomic(folder / kIndexFile, format_shard_index(index));
}

TokenStream::TokenStream(const fs::path& folder, const SplitIndex& split) : infos_(split.shards), begins_{0} {
  for (const ShardInfo& info : infos_) {
    const Shard& shard = shards_.emplace_back(folder / info.file);
    if (shard.size() != info.tokens)
      user_error(
          "[shard] {}: expected the {} tokens of {}, got {}; shard and index do not belong together: run `prepare` "
          "again",
          shard.path().string(), info.tokens, kIndexFile, shard.size());
    begins_.push_back(begins_.back() + shard.size());
  }
}

size_t TokenStream::shard_of(int64_t at) const {
  return size_t(std::upper_bound(begins_.begin(), begins_.end(), at) - begins_.begin()) - 1;
}

TokenStream::Place TokenStream::place(int64_t at) const {
  TOKAMAK_CHECK(at >= 0 && at < size(), "token {} of {}", at, size());
  size_t shard = shard_of(at);
  return {shards_[shard], at - begins_[shard]};
}

void TokenStream::read(int64_t begin, std::span<int32_t> out) const {
  TOKAMAK_CHECK(begin >= 0 && begin + int64_t(out.size()) <= size(), "tokens {} to {} of {}", begin,
                begin + int64_t(out.size()), size());
  size_t at = shard_of(begin);
  while (!out.empty()) {
    size_t count = std::min(out.size(), size_t(begins_[at + 1] - begin));
    shards_[at].read(begin - begins_[at], out.first(count));
    out = out.subspan(count);
    begin += int64_t(count);
    ++at;
  }
}

void TokenStream::verify() const {
  for (size_t i = 0; i < shards_.size(); ++i) shards_[i].verify(infos_[i]);
}

}  // namespace tokamak
