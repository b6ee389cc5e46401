#include "data/prepare_cut.h"

#include <algorithm>

namespace tokamak {

namespace {

/// Which files the tokens of a split come from, told in the order of the tokens.
class SourceList {
 public:
  /// `begins`: the first token of each file.
  SourceList(std::span<const int64_t> begins, int64_t tokens, std::span<const PreparePlan::Input> inputs,
             SplitIndex& split)
      : begins_(begins), tokens_(tokens), inputs_(inputs), split_(split) {}

  void add(int64_t begin, int64_t end) {
    // From the file in which the first token lies: those that begin there as well, before it, have no tokens.
    auto behind = size_t(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin());
    for (size_t i = std::max(next_, behind - 1); i < begins_.size() && begins_[i] < end; ++i) {
      int64_t file_end = i + 1 < begins_.size() ? begins_[i + 1] : tokens_;
      if (std::max(begins_[i], begin) >= std::min(file_end, end)) continue;
      split_.sources.push_back(inputs_[i].file);
      next_ = i + 1;
    }
  }

 private:
  std::span<const int64_t> begins_;
  int64_t tokens_;
  std::span<const PreparePlan::Input> inputs_;
  SplitIndex& split_;
  size_t next_ = 0;  // the first file that is not told of yet
};

}  // namespace

std::vector<PrepareJournal::Move> cut_validation(const std::filesystem::path& folder, PrepareShards& shards,
                                                 const PrepareOptions& options,
                                                 std::span<const PreparePlan::Input> inputs, TokenShardIndex& index,
                                                 const std::function<void()>& pause) {
  std::span<const int64_t> files = shards.files();  // asked for once: a second time they lie elsewhere
  SourceList train(files, shards.tokens(), inputs, index.train), val(files, shards.tokens(), inputs, index.val);
  ValidationDraw draw(shards.tokens(), shards.documents(), options.val_fraction, uint64_t(options.val_seed));
  bool draws = options.val_split == "drawn" || (options.val_split == "auto" && draw.is_enough());
  if (draws && options.val_fraction > 0) {
    draw.for_each([&](const DrawnRun& run) { (run.is_val ? val : train).add(run.begin, run.end); });
    return cut_drawn(folder, shards, draw, options.shard_tokens, index, pause);
  }
  int64_t split = split_point(shards.tokens(), shards.documents(), options.val_fraction);
  train.add(0, split);
  val.add(split, shards.tokens());
  return cut_splits(folder, shards, split, options.shard_tokens, index, pause);
}

}  // namespace tokamak
