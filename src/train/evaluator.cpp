#include "train/evaluator.h"

#include "data/document_starts.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

Evaluator::Evaluator(const std::filesystem::path& folder, const ShardIndex& index, const SplitIndex& split,
                     const RunConfig& config, int64_t batches)
    : loader_(folder, index, split,
              {.batch = config.train.batch,
               .context = config.model.context,
               .vocab_size = config.model.vocab,
               .sequential = true,
               .end_of_text = config.data.mask_documents ? int32_t(index.end_of_text) : -1}),
      batches_(std::clamp(loader_.windows() / config.train.batch, int64_t(1), std::max<int64_t>(batches, 1))),
      tokens_per_byte_(split.text_bytes > 0 ? double(split.tokens()) / double(split.text_bytes) : 0) {}

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
