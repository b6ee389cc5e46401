// Batches of training data in a deterministic order: a pure function of (data, seed, sample number), whatever the
// threads do, so that a run can stop anywhere and go on from one integer. For examples see tests/data/loader_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/shard_index.h"

namespace tokamak {

struct LoaderOptions {
  int64_t batch = 1;         // B, samples in a batch
  int64_t context = 1;       // T, tokens in a sample
  int64_t vocab_size = 0;    // the model's; 0: not checked
  uint64_t seed = 0;         // of the order of samples
  bool sequential = false;   // samples in the order of the data, for validation
  int prefetch = 2;          // batches made ahead by a thread; 0: none, no thread
  int32_t end_of_text = -1;  // the token that ends a document, to keep documents apart; -1: they are not
};

/// B samples. The targets are the tokens one place further on; kNoTarget where documents are kept apart and that token
/// begins another one (data/document_starts.h).
struct Batch {
  int64_t first_sample = 0;             // its number, counted over all epochs
  std::vector<int32_t> tokens;          // (B, T)
  std::vector<int32_t> targets;         // (B, T)
  std::vector<int32_t> documents = {};  // (B, T) document_starts(); empty where they are not kept apart
};

/// Cuts a stream of N tokens into W = (N - 1) / T windows of T + 1 tokens, each beginning with the last token of the
/// one before. Sample i is window (i mod W) of epoch i / W, in an order of its own for each epoch.
class Loader {
 public:
  /// Takes a split of a data folder. UserErrors: fewer than T + 1 tokens; tokens that the model's vocabulary lacks.
  Loader(const std::filesystem::path& folder, const ShardIndex& index, const SplitIndex& split, LoaderOptions options);
  Loader(Loader&&) noexcept;
  ~Loader();

  /// Makes `batch` the next one; its memory is used again.
  void next(Batch& batch);
  Batch next();

  /// Goes on with sample number `sample` (>= 0), in constant time.
  void seek(int64_t sample);

  /// The number of the first sample of the next batch: all the state there is.
  int64_t position() const;

  /// Windows in one epoch, W.
  int64_t windows() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
