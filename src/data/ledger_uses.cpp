// count_uses() of data/ledger.h.
#include <algorithm>
#include <atomic>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "data/ledger.h"
#include "data/sparse_counts.h"

namespace tokamak {

namespace {

constexpr int64_t kSamplesPerPiece = int64_t(1) << 20;

int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b > 0); }

/// Windows of all datasets as one row, of which a pass counts a part: with a count for each window, or with counts of
/// those alone that are used, so that windows that no sample comes near take no time.
class UseCounter {
 public:
  UseCounter(const Ledger& ledger, const DataRecord& record, const UseOptions& options)
      : ledger_(ledger), order_(record.order()), options_(options), seen_(record.datasets.size()) {
    for (const DatasetRecord& dataset : record.datasets) {
      begins_.push_back(windows_);
      windows_ += dataset.share.windows;
      uses_.push_back({.windows = dataset.share.windows});
    }
    // A used window's count takes four times the memory, and there are two of it as they are merged.
    int64_t most_used = divide_up(options.windows_per_pass, 8);
    int64_t dense = divide_up(windows_, options.windows_per_pass), sparse = divide_up(ledger.samples(), most_used);
    is_sparse_ = sparse < dense;
    passes_ = std::min(sparse, dense);
  }

  std::vector<DatasetUse> run() {
    if (double(passes_) * double(ledger_.samples()) > double(options_.most_counted))
      user_error(
          "[ledger] expected at most {} samples to count, got {} in {} passes over {} windows, which takes long; if "
          "the "
          "run did use so many, count them with --max-count={:.2g}",
          options_.most_counted, ledger_.samples(), passes_, windows_,
          1.01 * double(passes_) * double(ledger_.samples()));
    total_ = passes_ * ledger_.samples();
    int64_t width = is_sparse_ && passes_ > 0 ? divide_up(windows_, passes_) : options_.windows_per_pass;
    for (int64_t begin = 0; passes_ > 0 && begin < windows_; begin += width) {
      int64_t end = std::min(windows_, begin + width);
      is_sparse_ ? count_used(begin, end) : count_all(begin, end);
    }
    for (size_t dataset = 0; dataset < uses_.size(); ++dataset)
      take(dataset, 0, uses_[dataset].windows - seen_[dataset]);
    return uses_;
  }

 private:
  void count_all(int64_t begin, int64_t end) {
    std::vector<uint32_t> counts(size_t(end - begin));
    for_each_use([&](int64_t window, int64_t) {
      if (window >= begin && window < end)
        std::atomic_ref(counts[size_t(window - begin)]).fetch_add(1, std::memory_order_relaxed);
    });
    for (size_t dataset = 0; dataset < uses_.size(); ++dataset) {
      int64_t from = std::max(begin, begins_[dataset]);
      int64_t to = std::min(end, begins_[dataset] + uses_[dataset].windows);
      for (int64_t window = from; window < to; ++window) take(dataset, counts[size_t(window - begin)], 1);
    }
  }

  void count_used(int64_t begin, int64_t end) {
    SparseCounts counts;
    std::vector<int64_t> piece(size_t(std::min(kSamplesPerPiece, ledger_.samples())));
    for_each_use([&](int64_t window, int64_t at) { piece[size_t(at)] = window; },
                 [&](int64_t size) {
                   for (int64_t window : std::span(piece).first(size_t(size)))
                     if (window >= begin && window < end) counts.add(window);
                 });
    for (const auto& [window, uses] : counts.counts()) {
      auto next = std::upper_bound(begins_.begin(), begins_.end(), window);
      take(size_t(next - begins_.begin()) - 1, uses, 1);
    }
  }

  /// `use(window, i)` for sample i of a piece, by several threads; `done(size)` after each piece.
  void for_each_use(
      const std::function<void(int64_t, int64_t)>& use, const std::function<void(int64_t)>& done = [](int64_t) {}) {
    for (const LedgerSegment& segment : ledger_.segments)
      for (int64_t first = segment.first_sample; first < segment.end_sample(); first += kSamplesPerPiece) {
        int64_t size = std::min(segment.end_sample() - first, kSamplesPerPiece);
        parallel_for(size, order_.block_size(), [&](int64_t from, int64_t to, int) {
          SampleOrder order = order_;
          for (int64_t i = from; i < to; ++i) {
            SamplePlace place = order.at(first + i);
            use(begins_[size_t(place.dataset)] + place.window, i);
          }
        });
        done(size);
        done_ += size;
        if (options_.progress) options_.progress(done_, total_);
      }
  }

  /// So many windows of the dataset that were used `count` times each.
  void take(size_t dataset, int64_t count, int64_t windows) {
    if (windows == 0) return;
    DatasetUse& use = uses_[dataset];
    bool first = seen_[dataset] == 0;
    seen_[dataset] += windows;
    use.samples += count * windows;
    if (first || count < use.least) use.least = count, use.at_least = 0;
    if (first || count > use.most) use.most = count, use.at_most = 0;
    if (count == use.least) use.at_least += windows;
    if (count == use.most) use.at_most += windows;
  }

  const Ledger& ledger_;
  SampleOrder order_;
  const UseOptions& options_;
  int64_t windows_ = 0;
  bool is_sparse_ = false;
  int64_t passes_ = 0;
  int64_t total_ = 0, done_ = 0;  // samples, over all passes
  std::vector<int64_t> begins_;   // each dataset's first window in the row
  std::vector<DatasetUse> uses_;
  std::vector<int64_t> seen_;  // windows of each dataset that are in its uses
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
