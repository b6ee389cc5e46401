#include "data/token_shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "data/fingerprint.h"
#include "data/index_text.h"
#include "data/json_fields.h"
#include "data/sources/mds_index.h"

namespace tokamak {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kIndexVersion = 2;
constexpr int kUnsealedVersion = 1;

json to_json(const std::vector<FileChecksum>& files) {
  json list = json::array();
  for (const FileChecksum& file : files) list.push_back({{"file", file.file}, {"checksum", file.checksum}});
  return list;
}

json to_json(const SplitIndex& split) {
  json shards = json::array();
  for (const TokenShardInfo& shard : split.shards)
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

/// Of the version before checksums. A seal that is there is checked whatever the version says.
bool is_unsealed(const JsonFields& fields) {
  return fields.text("format") == kIndexFormat && fields.number("version") == kUnsealedVersion && !fields.has(kSeal);
}

SplitIndex split_from(const JsonFields& fields) {
  SplitIndex split;
  split.documents = fields.number("documents");
  split.text_bytes = fields.number("text_bytes");
  for (const JsonFields& shard : fields.objects("shards"))
    split.shards.push_back(
        {shard.text("file"), shard.number("tokens"), shard.number("max_token"), shard.text("checksum")});
  if (fields.has("sources")) split.sources = fingerprints_from(fields, "sources");  // an earlier version had none
  return split;
}

/// True if the seal is right; the text is then without the lists of sources. Of any other text nothing is known yet.
bool leave_out_sources(std::string& text) {
  IndexText scanned = scan_index(text);
  if (scanned.given != scanned.seal) return false;
  text = std::move(scanned.rest);
  return true;
}

}  // namespace

int64_t SplitIndex::tokens() const {
  int64_t sum = 0;
  for (const TokenShardInfo& shard : shards) sum += shard.tokens;
  return sum;
}

int64_t SplitIndex::max_token() const {
  int64_t max = 0;
  for (const TokenShardInfo& shard : shards) max = std::max(max, shard.max_token);
  return max;
}

bool is_prepared(const fs::path& path) {
  return fs::is_directory(path) && fs::exists(path / kIndexFile) && mds_index_entries(path / kIndexFile).empty();
}

void require_finished(const fs::path& path) {
  if (is_prepared(path) || !fs::is_directory(path / kUnfinishedFolder)) return;
  user_error(
      "[data] {}: expected data that is finished, got {} without {}: `tokamak prepare` was interrupted there, or is "
      "still at work; run the same `tokamak prepare` command again, which goes on from there",
      path.string(), kUnfinishedFolder, kIndexFile);
}

TokenShardIndex read_token_shard_index(const fs::path& folder, IndexSources sources) {
  require_finished(folder);
  fs::path path = folder / kIndexFile;
  if (!fs::exists(path))
    user_error("[data] expected {} in the data folder {}, got none; make the data with `tokamak prepare`", kIndexFile,
               folder.string());
  std::string text = read_file(path, kLargeFile);
  bool is_good = sources == IndexSources::kLeaveOut && leave_out_sources(text);
  JsonFields fields(text, path.string(), "the index is damaged: run `prepare` again");
  TokenShardIndex index;
  index.sealed = !is_unsealed(fields);
  if (index.sealed) {
    fields.require_format(kIndexFormat, kIndexVersion);
    if (!is_good) fields.require_seal();
    for (const JsonFields& file : fields.objects("tokenizer"))
      index.tokenizer.push_back({file.text("file"), file.text("checksum")});
  }
  index.vocab_size = fields.number("vocab_size");
  index.end_of_text = fields.number("end_of_text");
  index.train = split_from(fields.object("train"));
  index.val = split_from(fields.object("val"));
  return index;
}

std::string format_token_shard_index(const TokenShardIndex& index) {
  json root = {{"format", kIndexFormat},
               {"version", kIndexVersion},
               {"vocab_size", index.vocab_size},
               {"end_of_text", index.end_of_text},
               {"tokenizer", to_json(index.tokenizer)},
               {"train", to_json(index.train)},
               {"val", to_json(index.val)}};
  return seal_json(std::move(root));  // which may name millions of files
}

void write_token_shard_index(const TokenShardIndex& index, const fs::path& folder) {
  write_file_atomic(folder / kIndexFile, format_token_shard_index(index));
}

TokenStream::TokenStream(const fs::path& folder, const SplitIndex& split) : infos_(split.shards), begins_{0} {
  for (const TokenShardInfo& info : infos_) {
    const TokenShard& shard = shards_.emplace_back(folder / info.file);
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
