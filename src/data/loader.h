// Batches of training data in the one global order of samples (data/sample_order.h), read ahead by threads. What comes
// is a pure function of (data, seed, sample number), whatever the threads do, so that a run can stop anywhere and go on
// from one integer. For examples see tests/data/loader_test.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "data/batch_maker.h"
#include "data/corpus.h"

namespace tokamak {

struct LoaderOptions {
  int64_t batch = 1;       // B, samples in a batch
  int64_t vocab_size = 0;  // the model's; 0: not checked
  int64_t rank = 0;        // the process, of `world`
  int64_t world = 1;
  int32_t end_of_text = -1;  // the token that ends a document, to keep documents apart; -1: they are not
  int64_t workers = 1;       // threads; 0: none, next() makes the batch itself
  int64_t prefetch = 4;      // batches that are made ahead, at most
};

/// A batch that a thread has made, and when.
struct MadeBatch {
  int worker = 0;
  std::chrono::steady_clock::time_point begin, end;
};
using BatchWatcher = std::function<void(const MadeBatch&)>;

/// At position p, process r takes samples p + r * B .. p + (r + 1) * B - 1, and the position moves on by world * B. So
/// any batch sizes and numbers of processes go through the same sequence, and may change at any position.
class Loader {
 public:
  Loader(std::shared_ptr<const Corpus> corpus, LoaderOptions options);
  Loader(Loader&&) noexcept;
  ~Loader();

  /// Makes `batch` the next one; its memory is used again. Throws what making it has thrown, now and at further calls.
  void next(Batch& batch);
  Batch next();

  /// Goes on with sample number `sample` (>= 0) of the global order, in constant time.
  void seek(int64_t sample);

  /// Tells of each batch that a thread makes from now on, on that thread; null: nobody is told, and no clock is read.
  void watch(BatchWatcher watcher);

  /// The number of the first sample, of all processes, of the next batch: all the state there is.
  int64_t position() const;

  const Corpus& corpus() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
