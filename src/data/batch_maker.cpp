#include "data/batch_maker.h"

#include <algorithm>

#include "data/check_tokens.h"
#include "data/document_starts.h"
#include "data/marked_tokens.h"

namespace tokamak {

BatchMaker::BatchMaker(std::shared_ptr<const Corpus> corpus, int64_t vocab_size, int32_t end_of_text)
    : corpus_(std::move(corpus)), order_(corpus_->order()), vocab_size_(vocab_size), end_of_text_(end_of_text),
      readers_(corpus_->datasets().size()), window_(size_t(corpus_->context()) + 1) {}

void BatchMaker::make(int64_t first_sample, int64_t count, Batch& batch) {
  int64_t context = corpus_->context();
  batch.first_sample = first_sample;
  batch.tokens.resize(size_t(count * context));
  batch.targets.resize(batch.tokens.size());
  for (int64_t b = 0; b < count; ++b) {
    read(first_sample + b);
    std::transform(window_.begin() + 1, window_.end(), batch.targets.begin() + b * context,
                   [](int32_t token) { return is_learned(token) ? token : kNoTarget; });
    remove_marks(window_);
    std::copy_n(window_.begin(), context, batch.tokens.begin() + b * context);
  }
  if (end_of_text_ < 0) return;
  batch.documents = document_starts(batch.tokens, context, end_of_text_);
  hide_first_tokens(batch.tokens, end_of_text_, batch.targets);
}

void BatchMaker::read(int64_t sample) {
  SamplePlace place = order_.at(sample);
  auto dataset = size_t(place.dataset);
  if (!readers_[dataset]) readers_[dataset] = corpus_->datasets()[dataset]->reader();
  readers_[dataset]->read(place.window, window_);
  if (vocab_size_ > 0)
    check_tokens(*readers_[dataset], place.window, window_, vocab_size_, corpus_->datasets()[dataset]->facts().marked);
}

}  // namespace tokamak
