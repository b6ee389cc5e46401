// Batches from sample numbers; knows nothing of threads. Tests: tests/data/loader_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/corpus.h"

namespace tokamak {

/// B samples. The targets are the tokens one place further on; kNoTarget where documents are kept apart and that token
/// begins another one (data/document_starts.h).
struct Batch {
  int64_t first_sample = 0;             // its number, counted over all epochs
  std::vector<int32_t> tokens;          // (B, T)
  std::vector<int32_t> targets;         // (B, T)
  std::vector<int32_t> documents = {};  // (B, T) document_starts(); empty where they are not kept apart
};

/// Of `parts` equal parts of a batch's tokens, targets or documents, the one of this index.
inline std::span<const int32_t> part_of(std::span<const int32_t> all, int64_t part, int64_t parts) {
  size_t size = all.size() / size_t(parts);
  return all.subspan(size_t(part) * size, size);
}

/// One for each thread.
class BatchMaker {
 public:
  /// `vocab_size`: the model's; 0: tokens are not checked. `end_of_text`: the token that ends a document, to keep
  /// documents apart; -1: they are not.
  BatchMaker(std::shared_ptr<const Corpus> corpus, int64_t vocab_size, int32_t end_of_text = -1);

  /// Makes `batch` the samples first_sample .. first_sample + count - 1; its memory is used again. UserError naming
  /// file and place for a token that the model's vocabulary lacks.
  void make(int64_t first_sample, int64_t count, Batch& batch);

 private:
  void read(int64_t sample);

  std::shared_ptr<const Corpus> corpus_;
  SampleOrder order_;
  int64_t vocab_size_;
  int32_t end_of_text_;
  std::vector<std::unique_ptr<WindowReader>> readers_;  // of the datasets, made when they are first needed
  std::vector<int32_t> window_;                         // (T + 1)
};

}  // namespace tokamak
