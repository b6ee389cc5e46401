#include "data/inspect.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/parallel.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kPieceTokens = int64_t(1) << 18;

/// Adds up what several threads have done.
class SharedProgress {
 public:
  SharedProgress(const InspectProgress& tell, int64_t total) : tell_(tell), total_(total) {}

  void add(int64_t bytes) {
    if (!tell_) return;
    std::lock_guard lock(mutex_);
    done_ += bytes;
    tell_(done_, total_);
  }

 private:
  const InspectProgress& tell_;
  int64_t total_;
  std::mutex mutex_;
  int64_t done_ = 0;
};

TokenStats shard_stats(const Shard& shard, int32_t separator) {
  TokenStats stats(separator);
  std::vector<int32_t> piece;
  for (int64_t at = 0; at < shard.size(); at += kPieceTokens) {
    piece.resize(size_t(std::min(kPieceTokens, shard.size() - at)));
    shard.read(at, piece);
    stats.add(piece);
  }
  return stats;
}

TokenStats check_shard(const Shard& shard, const ShardInfo& info, const ShardIndex& index) {
  std::string name = shard.path().string();
  if (shard.size() != info.tokens)
    user_error("[shard] {}: expected the {} tokens of {}, got {}; shard and index do not belong together", name,
               info.tokens, kIndexFile, shard.size());
  shard.verify(info);
  TokenStats stats = shard_stats(shard, int32_t(index.end_of_text));
  if (stats.most() >= index.vocab_size || stats.least() < 0)
    user_error("[shard] {}: expected token ids below {}, got {}; shard and vocabulary do not belong together", name,
               index.vocab_size, stats.least() < 0 ? stats.least() : stats.most());
  if (stats.tokens() > 0 && stats.most() != info.max_token)
    user_error("[shard] {}: expected {} as the largest token id, got {}; shard and index do not belong together", name,
               info.max_token, stats.most());
  return stats;
}

/// Runs `read`; what it throws becomes the file's problem.
template <typename Read>
void note_problem(FileReport& file, Read read) {
  try {
    std::error_code error;
    auto bytes = fs::file_size(file.path, error);
    file.bytes = error ? 0 : int64_t(bytes);
    read();
  } catch (const std::exception& error) {
    file.problem = error.what();
  }
}

}  // namespace

int64_t DataReport::damaged() const {
  return std::count_if(files.begin(), files.end(), [](const FileReport& file) { return !file.problem.empty(); });
}

TokenStats DataReport::tokens(std::string_view split) const {
  std::optional<int32_t> separator;
  if (index) separator = int32_t(index->end_of_text);
  TokenStats all(separator);
  for (const FileReport& file : files)
    if (file.split == split && file.problem.empty()) all.append(file.tokens);
  return all;
}

DataReport inspect_folder(const fs::path& folder, const InspectProgress& tell) {
  DataReport report{.path = folder.string(), .index = read_shard_index(folder), .files = {}};
  const ShardIndex& index = *report.index;
  std::vector<const ShardInfo*> infos;
  auto list = [&](const char* name, const SplitIndex& split) {
    for (const ShardInfo& info : split.shards) {
      infos.push_back(&info);
      report.files.push_back({.path = folder / info.file, .split = name, .format = "bin", .checksum = info.checksum});
    }
  };
  list("train", index.train);
  list("val", index.val);

  int64_t token_bytes = shard_token_bytes(index.vocab_size);
  SharedProgress progress(tell, (index.train.tokens() + index.val.tokens()) * token_bytes);
  parallel_for(int64_t(infos.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      FileReport& file = report.files[size_t(i)];
      const ShardInfo& info = *infos[size_t(i)];
      note_problem(file, [&] { file.tokens = check_shard(Shard(file.path), info, index); });
      progress.add(info.tokens * token_bytes);
    }
  });
  return report;
}

std::vector<DataSample> sample_tokens(const DataReport& report, int64_t count, int64_t tokens) {
  int64_t all = 0;
  for (const FileReport& file : report.files) all += file.tokens.tokens();
  std::vector<DataSample> samples;
  for (int64_t i = 0; i < count && all > 0; ++i) {
    int64_t at = all / count * i;
    auto file = report.files.begin();
    while (at >= file->tokens.tokens()) at -= (file++)->tokens.tokens();
    DataSample& sample = samples.emplace_back(DataSample{file->path, at, {}});
    sample.ids.resize(size_t(std::min(tokens, file->tokens.tokens() - at)));
    Shard(file->path).read(at, sample.ids);
  }
  return samples;
}

}  // namespace tokamak
