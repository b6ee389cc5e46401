#include "run/evaluator.h"

#include "base/error.h"
#include "compile/compiled_run.h"
#include "data/check_targets.h"
#include "data/document_starts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

std::shared_ptr<const Corpus> corpus_of(const std::shared_ptr<const Dataset>& dataset, const Corpus& corpus) {
  return std::make_shared<const Corpus>(Corpus({dataset}, {1.0}, corpus.context(), corpus.order().seed()).sequential());
}

int64_t share_of(int64_t windows, const Dataset& dataset, const Corpus& corpus) {
  double share = double(windows) * double(dataset.windows()) / double(corpus.windows());
  return share >= double(dataset.windows()) ? dataset.windows() : std::max<int64_t>(int64_t(std::ceil(share)), 1);
}

// The last batch goes on beyond the windows that are wanted; what is beyond does not count.
void leave_out(Batch& batch, int64_t samples, int64_t context) {
  std::fill(batch.targets.begin() + samples * context, batch.targets.end(), kNoTarget);
}

}  // namespace

int64_t count_windows(const ResolvedRun& run, int64_t batches) {
  return batches * (run.whole_slots > 1 ? run.asked.step_tokens() / run.asked.model.context : run.batch);
}

Evaluator::Evaluator(std::shared_ptr<const Corpus> corpus, const Tokenizer* tokenizer, const ResolvedRun& run,
                     int64_t windows)
    : options_{.batch = run.batch,
               .vocab_size = run.asked.model.vocab,
               .end_of_text = mask_token(run.asked, *corpus, tokenizer),
               .workers = std::min<int64_t>(run.asked.data.workers, 1)},
      at_once_(size_t(batches_at_once(run))), all_windows_(corpus->windows()) {
  for (const auto& dataset : corpus->datasets()) {
    DatasetFacts facts = dataset->facts();
    bool told = facts.tokens > 0 && facts.text_bytes > 0;
    entries_.push_back({corpus_of(dataset, *corpus), share_of(windows, *dataset, *corpus),
                        told ? double(facts.tokens) / double(facts.text_bytes) : 0});
  }
  for (const Entry& entry : entries_)
    require_targets(*entry.corpus->datasets().front(), entry.corpus->context(), entry.windows, options_.end_of_text);
  if (tokenizer) text_lengths_ = text_lengths(tokenizer->vocabulary());
}

Evaluation Evaluator::evaluate(const LossesOf& losses_of) const {
  Evaluation out{.all_windows = all_windows_};
  ByteCount counted;
  for (const Entry& entry : entries_) {
    const EntryLoss& one = out.entries.emplace_back(evaluate(entry, losses_of, counted));
    out.loss += one.loss * double(one.tokens);
    out.tokens += one.tokens;
    out.windows += entry.windows;
  }
  out.loss /= double(out.tokens);
  out.perplexity = std::exp(out.loss);
  if (counted.unknown.empty() && counted.bytes == 0)
    counted.unknown = fmt::format("no bits per byte: the tokens of {} stand for no text", out.entries.front().path);
  out.unknown = counted.unknown;
  if (out.unknown.empty()) out.bits_per_byte = out.loss / std::log(2.0) * counted.tokens / counted.bytes;
  return out;
}

EntryLoss Evaluator::evaluate(const Entry& entry, const LossesOf& losses_of, ByteCount& counted) const {
  EntryLoss out{.path = entry.corpus->datasets().front()->path()};
  int64_t context = entry.corpus->context();
  Loader loader(entry.corpus, options_);
  std::vector<Batch> batches;
  for (int64_t done = 0; done < entry.windows; done += options_.batch) {
    Batch batch = loader.next();
    int64_t samples = std::min(options_.batch, entry.windows - done);
    leave_out(batch, samples, context);
    count(entry, std::span(batch.tokens).first(size_t(samples * context)), counted);
    if (count_targets(batch.targets) > 0) batches.push_back(std::move(batch));
    if (batches.size() < at_once_) continue;
    add_losses(batches, losses_of, out);
    batches.clear();
  }
  if (!batches.empty()) add_losses(batches, losses_of, out);
  entry.corpus->verify_used();
  TOKAMAK_CHECK(out.tokens > 0, "no target counts in {}", out.path);
  out.loss /= double(out.tokens);
  return out;
}

void Evaluator::add_losses(std::span<const Batch> batches, const LossesOf& losses_of, EntryLoss& to) const {
  std::vector<double> losses = losses_of(batches);
  size_t parts = losses.size() / batches.size();
  for (size_t i = 0; i < losses.size(); ++i) {
    int64_t targets = count_targets(part_of(batches[i / parts].targets, int64_t(i % parts), int64_t(parts)));
    to.loss += losses[i] * double(targets);
    to.tokens += targets;
  }
}

// Of the inputs, as the mask hides some targets: over all windows they are the same tokens but for the last one.
void Evaluator::count(const Entry& entry, std::span<const int32_t> ids, ByteCount& counted) const {
  constexpr const char* kRemedy = "name the one that made it (--data.tokenizer; of eval --tokenizer)";
  counted.tokens += double(ids.size());
  if (entry.tokens_per_byte > 0) {
    counted.bytes += double(ids.size()) / entry.tokens_per_byte;
    return;
  }
  const std::string& path = entry.corpus->datasets().front()->path();
  if (text_lengths_.empty())
    counted.unknown =
        fmt::format("no bits per byte: without a tokenizer the text of {} is not known; {}", path, kRemedy);
  for (int32_t id : ids) {
    if (size_t(id) < text_lengths_.size())
      counted.bytes += text_lengths_[size_t(id)];
    else if (!text_lengths_.empty())
      counted.unknown = fmt::format("no bits per byte: the data ({}) has the token {}, and the tokenizer only {}; {}",
                                    path, id, text_lengths_.size(), kRemedy);
  }
}

}  // namespace tokamak
