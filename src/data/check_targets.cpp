#include "data/check_targets.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "data/batch_maker.h"
#include "data/corpus.h"
#include "data/document_starts.h"

namespace tokamak {

namespace {

constexpr int64_t kLooked = 4096;  // windows of an entry, before a run

constexpr const char* kTargetsRemedy =
    "check the data and data.end_of_text, or let all targets count with --data.mask_documents=false";

bool any_target(const Dataset& dataset, int64_t context, int64_t windows, int32_t end_of_text) {
  if (end_of_text < 0) return true;
  auto reader = dataset.reader();
  std::vector<int32_t> window(size_t(context + 1));
  for (int64_t i = 0; i < windows; ++i) {
    reader->read(i, window);
    if (has_target(window, end_of_text)) return true;
  }
  return false;
}

}  // namespace

void require_targets(const Dataset& dataset, int64_t context, int64_t windows, int32_t end_of_text) {
  if (any_target(dataset, context, windows, end_of_text)) return;
  user_error(
      "[data] {}: expected targets that count in its first {} windows, got none: each of their tokens is {}, the end "
      "of a "
      "document (data.end_of_text), behind which data.mask_documents hides the target; take more of it, {}",
      dataset.path(), windows, end_of_text, kTargetsRemedy);
}

void require_some_targets(const Corpus& corpus, int32_t end_of_text) {
  for (const auto& dataset : corpus.datasets()) {
    int64_t windows = std::min(dataset->windows(), kLooked);
    if (windows < dataset->windows() || any_target(*dataset, corpus.context(), windows, end_of_text)) return;
  }
  const Dataset& first = *corpus.datasets().front();
  require_targets(first, corpus.context(), first.windows(), end_of_text);
}

void require_targets(std::span<const Batch> batches, int64_t step) {
  auto counts = [](const Batch& batch) { return count_targets(batch.targets) > 0; };
  if (std::ranges::any_of(batches, counts)) return;
  user_error(
      "[data] expected targets that count in step {} (from sample {} on), got none: each token is the end of a "
      "document; "
      "{}",
      step, batches.front().first_sample, kTargetsRemedy);
}

}  // namespace tokamak
