// count_uses() of data/ledger.h.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/error.h"
#include "base/parallel.h"
#include "data/ledger.h"

namespace tokamak {

namespace {

constexpr int64_t kSamplesPerPiece = int64_t(1) << 20;

/// Windows of all datasets as one row, of which a pass counts a part.
class UseCounter {
 public:
  UseCounter(const Ledger& ledger, const DataRecord& record, const UseOptions& options)
      : ledger_(ledger), order_(record.order()), options_(options) {
    for (const DatasetRecord& dataset : record.datasets) {
      begins_.push_back(windows_);
      windows_ += dataset.share.windows;
    }
    uses_.resize(record.datasets.size());
    for (size_t i = 0; i < uses_.size(); ++i) {
      int64_t windows = record.datasets[i].share.windows;
      uses_[i] = {.windows = windows, .at_least = windows, .at_most = windows};  // each 0 times, so far
    }
    total_ = (windows_ + options_.windows_per_pass - 1) / options_.windows_per_pass * ledger_.samples();
  }

  std::vector<DatasetUse> run() {
    if (ledger_.samples() == 0) return uses_;
    for (int64_t begin = 0; begin < windows_; begin += options_.windows_per_pass)
      count_pass(begin, std::min(windows_, begin + options_.windows_per_pass));
    return uses_;
  }

 private:
  void count_pass(int64_t begin, int64_t end) {
    counts_.assign(size_t(end - begin), 0);
    for (const LedgerSegment& segment : ledger_.segments)
      for (int64_t sample = segment.first_sample; sample < segment.end_sample(); sample += kSamplesPerPiece)
        count_samples(sample, std::min(segment.end_sample(), sample + kSamplesPerPiece), begin, end);
    for (size_t dataset = 0; dataset < uses_.size(); ++dataset) add_counts(dataset, begin, end);
  }

  void count_samples(int64_t first_sample, int64_t end_sample, int64_t begin, int64_t end) {
    parallel_for(end_sample - first_sample, order_.block_size(), [&](int64_t from, int64_t to, int) {
      SampleOrder order = order_;
      for (int64_t i = from; i < to; ++i) {
        SamplePlace place = order.at(first_sample + i);
        int64_t window = begins_[size_t(place.dataset)] + place.window;
        if (window < begin || window >= end) continue;
        std::atomic_ref(counts_[size_t(window - begin)]).fetch_add(1, std::memory_order_relaxed);
      }
    });
    done_ += end_sample - first_sample;
    if (options_.progress) options_.progress(done_, total_);
  }

  /// Takes in the dataset's windows among those of the pass.
  void add_counts(size_t dataset, int64_t begin, int64_t end) {
    DatasetUse& use = uses_[dataset];
    int64_t from = std::max(begin, begins_[dataset]), to = std::min(end, begins_[dataset] + use.windows);
    for (int64_t window = from; window < to; ++window) {
      int64_t count = counts_[size_t(window - begin)];
      bool first = window == begins_[dataset];
      use.samples += count;
      if (first || count < use.least) use.least = count, use.at_least = 0;
      if (first || count > use.most) use.most = count, use.at_most = 0;
      use.at_least += count == use.least;
      use.at_most += count == use.most;
    }
  }

  const Ledger& ledger_;
  SampleOrder order_;
  const UseOptions& options_;
  int64_t windows_ = 0;
  int64_t total_ = 0, done_ = 0;  // samples, over all passes
  std::vector<int64_t> begins_;   // each dataset's first window in the row
  std::vector<uint32_t> counts_;
  std::vector<DatasetUse> uses_;
};

std::string compare_with_promise(const DatasetUse& use, int64_t promised_samples) {
  if (use.samples != promised_samples)
    return fmt::format("{} samples were used, the order promises {}", use.samples, promised_samples);
  int64_t least = use.samples / use.windows, more = use.samples % use.windows;
  int64_t most = least + (more > 0), at_most = more > 0 ? more : use.windows;
  if (use.least == least && use.most == most && use.at_most == at_most) return "";
  return fmt::format(
      "windows were used {} to {} times ({} of them {} times), the order promises {} to {} ({} of them {})", use.least,
      use.most, use.at_most, use.most, least, most, at_most, most);
}

}  // namespace

std::vector<DatasetUse> count_uses(const Ledger& ledger, const DataRecord& record, const UseOptions& options) {
  std::vector<DatasetUse> uses = UseCounter(ledger, record, options).run();
  SampleOrder order = record.order();
  int64_t samples = ledger.end_sample();
  for (size_t dataset = 0; dataset < uses.size(); ++dataset)
    uses[dataset].problem = compare_with_promise(uses[dataset], order.count(samples, int64_t(dataset)));
  return uses;
}

}  // namespace tokamak
