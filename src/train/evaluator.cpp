#include "train/evaluator.h"

#include "config/config.h"
#include "data/document_starts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

std::string find_untold(const Corpus& corpus) {
  for (const auto& dataset : corpus.datasets())
    if (dataset->facts().tokens == 0 || dataset->facts().text_bytes == 0) return dataset->path();
  return "";
}

}  // namespace

Evaluator::Evaluator(std::shared_ptr<const Corpus> corpus, const Tokenizer* tokenizer, const RunConfig& config,
                     int64_t batches)
    : loader_(corpus, {.batch = config.train.batch,
                       .vocab_size = config.model.vocab,
                       .end_of_text = mask_token(config, *corpus, tokenizer),
                       .workers = std::min<int64_t>(config.data.workers, 1)}),
      batches_(std::clamp(corpus->windows() / config.train.batch, int64_t(1), std::max<int64_t>(batches, 1))),
      tokens_per_byte_(corpus->tokens_per_byte()), untold_(find_untold(*corpus)) {
  if (tokenizer) text_lengths_ = text_lengths(tokenizer->vocabulary());
}

Evaluation Evaluator::evaluate(const std::function<double(const Batch&)>& loss_of) {
  Evaluation out;
  loader_.seek(0);
  Batch batch;
  ByteCount counted;
  for (int64_t i = 0; i < batches_; ++i) {
    loader_.next(batch);
    int64_t targets = count_targets(batch.targets);
    out.loss += loss_of(batch) * double(targets);
    out.tokens += targets;
    count(batch.tokens, counted);
  }
  out.loss /= double(std::max<int64_t>(out.tokens, 1));
  out.perplexity = std::exp(out.loss);
  double tokens_per_byte = tokens_per_byte_;
  if (tokens_per_byte == 0) {
    out.unknown = why_unknown(counted);
    if (out.unknown.empty()) tokens_per_byte = double(counted.tokens) / double(counted.bytes);
  }
  out.bits_per_byte = out.loss / std::log(2.0) * tokens_per_byte;
  return out;
}

// Of the inputs, as the mask hides some targets: over all windows they are the same tokens but for the last one.
void Evaluator::count(std::span<const int32_t> ids, ByteCount& counted) const {
  counted.tokens += int64_t(ids.size());
  for (int32_t id : ids) {
    if (size_t(id) < text_lengths_.size())
      counted.bytes += text_lengths_[size_t(id)];
    else
      counted.foreign = id;
  }
}

std::string Evaluator::why_unknown(const ByteCount& counted) const {
  constexpr const char* kRemedy = "name the one that made it (--data.tokenizer; of eval --tokenizer)";
  if (text_lengths_.empty())
    return fmt::format("no bits per byte: without a tokenizer the text of {} is not known; {}", untold_, kRemedy);
  if (counted.foreign)
    return fmt::format("no bits per byte: the data ({}) has the token {}, and the tokenizer only {}; {}", untold_,
                       *counted.foreign, text_lengths_.size(), kRemedy);
  if (counted.bytes == 0) return fmt::format("no bits per byte: the tokens of {} stand for no text", untold_);
  return "";
}

}  // namespace tokamak
