#include "train/evaluator.h"

#include "data/document_starts.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

Evaluator::Evaluator(std::shared_ptr<const Corpus> corpus, const Tokenizer* tokenizer, const RunConfig& config,
                     int64_t batches)
    : loader_(corpus, {.batch = config.train.batch,
                       .vocab_size = config.model.vocab,
                       .end_of_text = mask_token(config, *corpus, tokenizer),
                       .workers = std::min<int64_t>(config.data.workers, 1)}),
      batches_(std::clamp(corpus->windows() / config.train.batch, int64_t(1), std::max<int64_t>(batches, 1))),
      tokens_per_byte_(corpus->tokens_per_byte()) {}

Evaluation Evaluator::evaluate(const std::function<double(const Batch&)>& loss_of) {
  Evaluation out;
  loader_.seek(0);
  Batch batch;
  for (int64_t i = 0; i < batches_; ++i) {
    loader_.next(batch);
    int64_t counted = count_targets(batch.targets);
    out.loss += loss_of(batch) * double(counted);
    out.tokens += counted;
  }
  out.loss /= double(std::max<int64_t>(out.tokens, 1));
  out.perplexity = std::exp(out.loss);
  out.bits_per_byte = out.loss / std::log(2.0) * tokens_per_byte_;
  return out;
}

}  // namespace tokamak
