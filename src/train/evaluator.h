// Validation loss over the beginning of a data split, always the same samples.
#pragma once

#include "config/config.h"
#include "data/loader.h"

#include <functional>

namespace tokamak {

struct Evaluation {
  double loss = 0;           // mean, nats a token
  double perplexity = 0;     // e^loss
  double bits_per_byte = 0;  // loss in bits x tokens / bytes of the split's text; 0 when the bytes are unknown
  int64_t tokens = 0;        // that it was measured on: the targets that count
};

class Evaluator {
 public:
  /// `batches` of train.batch samples, or as many whole ones as the data has (at least one).
  /// `tokenizer` may be null.
  Evaluator(std::shared_ptr<const Corpus> corpus, const Tokenizer* tokenizer, const RunConfig& config, int64_t batches);

  /// `loss_of` gives the mean loss of one batch's targets that count.
  Evaluation evaluate(const std::function<double(const Batch&)>& loss_of);

 private:
  Loader loader_;
  int64_t batches_;
  double tokens_per_byte_;
};

}  // namespace tokamak
