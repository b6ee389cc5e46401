#include "data/corpus.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"
#include "config/config.h"

namespace tokamak {

namespace {

std::vector<MixtureShare> shares_of(const Corpus::Datasets& datasets, const std::vector<double>& weights,
                                    int64_t block) {
  std::vector<int64_t> quotas = mixture_quotas(weights, block);
  std::vector<MixtureShare> shares;
  for (size_t i = 0; i < datasets.size(); ++i) shares.push_back({datasets[i]->windows(), quotas[i]});
  return shares;
}

}  // namespace

std::string content_checksum(const Dataset& dataset, int64_t context) {
  int64_t count = std::min<int64_t>(dataset.windows(), 16);
  std::unique_ptr<WindowReader> reader = dataset.reader();
  std::vector<int32_t> tokens(size_t(count * (context + 1)));
  for (int64_t i = 0; i < count; ++i) {
    auto window = int64_t(__int128(dataset.windows() - 1) * i / std::max<int64_t>(count - 1, 1));
    reader->read(window, std::span(tokens).subspan(size_t(i * (context + 1)), size_t(context + 1)));
  }
  return format_checksum(checksum(std::as_bytes(std::span(tokens))));
}

Corpus::Corpus(Datasets datasets, const std::vector<double>& weights, int64_t context, uint64_t seed, int64_t block)
    : datasets_(std::move(datasets)), context_(context), order_(seed, shares_of(datasets_, weights, block)) {}

Corpus Corpus::sequential() const {
  Corpus copy = *this;
  copy.order_ = SampleOrder(order_.seed(), order_.shares(), true);
  return copy;
}

int64_t Corpus::windows() const {
  int64_t sum = 0;
  for (const auto& dataset : datasets_) sum += dataset->windows();
  return sum;
}

DataRecord Corpus::record() const {
  DataRecord record{.seed = order_.seed(), .context = context_, .datasets = {}};
  for (size_t i = 0; i < datasets_.size(); ++i) {
    const Dataset& dataset = *datasets_[i];
    record.datasets.push_back({dataset.path(), dataset.kind(), order_.shares()[i], dataset.window_bytes(),
                               dataset.fingerprints(), content_checksum(dataset, context_)});
  }
  return record;
}

int64_t Corpus::needed_vocab() const {
  int64_t needed = 0;
  for (const auto& dataset : datasets_) {
    DatasetFacts facts = dataset->facts();
    needed = std::max(needed, facts.vocab_size > 0 ? std::max(facts.vocab_size, facts.max_token + 1) : 0);
  }
  return needed;
}

std::optional<int32_t> Corpus::end_of_text() const {
  std::optional<int32_t> found;
  for (const auto& dataset : datasets_) {
    std::optional<int32_t> marker = dataset->facts().end_of_text;
    if (found && marker && *found != *marker)
      user_error(
          "[data] expected one end-of-text token for all data, got {} and, in {}, {}; prepare it again with the "
          "same vocabulary",
          *found, dataset->path(), *marker);
    if (marker) found = marker;
  }
  return found;
}

void Corpus::verify_used() const {
  for (const auto& dataset : datasets_) dataset->verify_used();
}

double Corpus::tokens_per_byte() const {
  double bytes = 0;  // of text, for as many tokens as a block has samples
  for (size_t i = 0; i < datasets_.size(); ++i) {
    DatasetFacts facts = datasets_[i]->facts();
    if (facts.tokens <= 0 || facts.text_bytes <= 0) return 0;
    bytes += double(order_.shares()[i].quota) * double(facts.text_bytes) / double(facts.tokens);
  }
  return double(order_.block_size()) / bytes;
}

std::optional<int32_t> find_end_of_text(const RunConfig& config, const Corpus& corpus, const Tokenizer* tokenizer) {
  if (config.data.end_of_text >= 0) return int32_t(config.data.end_of_text);
  if (std::optional<int32_t> found = corpus.end_of_text()) return found;
  if (tokenizer) return tokenizer->end_of_text();
  return std::nullopt;
}

int32_t mask_token(const RunConfig& config, const Corpus& corpus, const Tokenizer* tokenizer) {
  if (!config.data.mask_documents) {
    for (const auto& dataset : corpus.datasets())
      if (dataset->facts().marked)
        user_error(
            "[data.mask_documents] expected true, as in {} some tokens are not learned (prepare --chat), got false; "
            "add "
            "--data.mask_documents=true",
            dataset->path());
    return -1;
  }
  std::optional<int32_t> found = find_end_of_text(config, corpus, tokenizer);
  if (!found)
    user_error(
        "[data.mask_documents] expected to know the token between documents, got {}, which does not tell it; give its "
        "id "
        "with --data.end_of_text, or the vocabulary's files with --data.tokenizer",
        corpus.datasets().front()->path());
  return *found;
}

}  // namespace tokamak
