// Validation loss over the beginning of a data split, always the same samples.
// Tests: tests/train/evaluator_test.cpp.
#pragma once

#include "data/loader.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct RunConfig;

struct Evaluation {
  double loss = 0;           // mean, nats a token
  double perplexity = 0;     // e^loss
  double bits_per_byte = 0;  // loss in bits x tokens / bytes of their text; 0 when the bytes are unknown
  int64_t tokens = 0;        // that it was measured on: the targets that count
  std::string unknown;       // a sentence that says why the bytes are unknown
};

class Evaluator {
 public:
  /// `batches` of train.batch samples, or as many whole ones as the data has (at least one).
  /// `tokenizer` may be null. It counts the bytes of text where the data does not tell them.
  Evaluator(std::shared_ptr<const Corpus> corpus, const Tokenizer* tokenizer, const RunConfig& config, int64_t batches);

  /// `loss_of` gives the mean loss of one batch's targets that count.
  Evaluation evaluate(const std::function<double(const Batch&)>& loss_of);

 private:
  /// Of the tokens of an evaluation.
  struct ByteCount {
    int64_t tokens = 0, bytes = 0;
    std::optional<int32_t> foreign;  // an id that the tokenizer lacks
  };

  void count(std::span<const int32_t> ids, ByteCount& counted) const;
  std::string why_unknown(const ByteCount& counted) const;

  Loader loader_;
  int64_t batches_;
  double tokens_per_byte_;             // as the data tells it; 0: it does not
  std::string untold_;                 // the entry that does not
  std::vector<int32_t> text_lengths_;  // of the tokenizer's ids; empty: there is none
};

}  // namespace tokamak
