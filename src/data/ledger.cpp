#include "data/ledger.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

using Event = LedgerLine::Event;

/// The state of the replay: the steps that count so far.
class Replay {
 public:
  explicit Replay(const DataRecord& record) : order_(order_checksum(record)) {}

  void take(const LedgerLine& line) {
    ++number_;
    check_chain(line);
    if (line.order != order_)
      problem("belongs to data of another order ({}) than {} does ({}): other files, weights, seed or context",
              line.order, kDataRecordFile, order_);
    line.event == Event::kStart ? start(line) : saved(line);
  }

  void miss_end(int64_t step) {
    problem(
        "is not the line behind which the newest checkpoint, of step {}, was saved, nor is any before it: lines "
        "were removed",
        step);
  }

  Ledger finish(const std::optional<SavedState>& saved) && {
    if (saved) compare(*saved);
    std::erase_if(ledger_.segments,
                  [](const LedgerSegment& segment) { return segment.first_step == segment.end_step; });
    return std::move(ledger_);
  }

 private:
  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    std::string line = number_ > 0 ? fmt::format("{}:{}", kLedgerFile, number_) : kLedgerFile;
    ledger_.problems.push_back(line + " " + fmt::format(format, std::forward<Args>(args)...));
  }

  void check_chain(const LedgerLine& line) {
    if (line.chain != ledger_chain(chain_, line))
      problem("does not follow from the line before it: a line was removed, repeated or changed");
    chain_ = line.chain;
  }

  void start(const LedgerLine& line) {
    if (ledger_.starts++ == 0) {
      if (line.step != 0 || line.sample != 0)
        problem("begins after step {} with sample {}: what was used before it is not written down", line.step,
                line.sample);
    } else {
      go_on(line);
    }
    ledger_.segments.push_back({line.step, line.step, line.sample, line.samples_per_step, line.time});
    ledger_.ended = false;
  }

  /// What was done after `line.step` is lost; what was done up to it counts.
  void go_on(const LedgerLine& line) {
    int64_t done = std::max(last().end_step, line.reached);
    extend(line.step);
    int64_t expected = sample_after(line.step);
    if (expected != line.sample)
      problem("goes on after step {} with sample {}, but the steps before it used {} samples", line.step, line.sample,
              expected);
    cut(line.step);
    if (done > line.step) ledger_.lost.push_back({line.step, done});
  }

  void saved(const LedgerLine& line) {
    if (ledger_.segments.empty() || ledger_.ended) return problem("is of a process whose start is not written down");
    LedgerSegment& segment = ledger_.segments.back();
    if (line.samples_per_step != segment.samples_per_step || line.step < segment.end_step ||
        line.sample != segment.first_sample + (line.step - segment.first_step) * segment.samples_per_step)
      problem("says {} steps and {} samples, which does not follow from step {}, sample {} and {} samples a step",
              line.step, line.sample, segment.first_step, segment.first_sample, segment.samples_per_step);
    segment.end_step = std::max(segment.end_step, line.step);
    ledger_.ended = line.event == Event::kEnd;
  }

  void compare(const SavedState& saved) {
    if (ledger_.segments.empty())
      return problem("has no line that begins a run, but the newest checkpoint is of step {}", saved.step);
    if (!saved.order.empty() && saved.order != order_)
      problem("and {} are of data of another order ({}) than the newest checkpoint was trained on ({}): another run's",
              kDataRecordFile, order_, saved.order);
    int64_t done = last().end_step;
    if (ledger_.ended && saved.step > done)
      problem("is the last line and ends after step {}, but the newest checkpoint is of step {}", done, saved.step);
    extend(saved.step);
    if (int64_t expected = sample_after(saved.step); expected != saved.sample)
      problem("and those before it lead to sample {} after step {}, but the checkpoint of that step has {}", expected,
              saved.step, saved.sample);
    cut(saved.step);
    if (done > saved.step) ledger_.lost.push_back({saved.step, done});
  }

  LedgerSegment& last() { return ledger_.segments.back(); }

  /// A checkpoint may be saved and its line not written: then what follows shows how far the segment went.
  void extend(int64_t step) {
    if (!ledger_.ended) last().end_step = std::max(last().end_step, step);
  }

  /// The number of the next sample after `step` steps; -1 where that is not known.
  int64_t sample_after(int64_t step) const {
    for (const LedgerSegment& segment : ledger_.segments)
      if (segment.first_step <= step && step <= segment.end_step)
        return segment.first_sample + (step - segment.first_step) * segment.samples_per_step;
    return -1;
  }

  /// Leaves the steps before `step`, and at least one segment.
  void cut(int64_t step) {
    while (ledger_.segments.size() > 1 && last().first_step >= step) ledger_.segments.pop_back();
    last().end_step = std::clamp(step, last().first_step, last().end_step);
  }

  std::string order_;
  std::string chain_;
  int64_t number_ = 0;  // of the line
  Ledger ledger_;
};

}  // namespace

int64_t Ledger::steps() const {
  int64_t sum = 0;
  for (const LedgerSegment& segment : segments) sum += segment.end_step - segment.first_step;
  return sum;
}

int64_t Ledger::samples() const {
  int64_t sum = 0;
  for (const LedgerSegment& segment : segments) sum += segment.end_sample() - segment.first_sample;
  return sum;
}

const LedgerSegment* Ledger::segment_of_step(int64_t step) const {
  for (const LedgerSegment& segment : segments)
    if (segment.first_step <= step && step < segment.end_step) return &segment;
  return nullptr;
}

const LedgerSegment* Ledger::segment_of_sample(int64_t sample) const {
  for (const LedgerSegment& segment : segments)
    if (segment.first_sample <= sample && sample < segment.end_sample()) return &segment;
  return nullptr;
}

Ledger replay_ledger(const std::vector<LedgerLine>& lines, const DataRecord& record,
                     const std::optional<SavedState>& saved) {
  Replay replay(record);
  for (const LedgerLine& line : lines) replay.take(line);
  bool is_same_run = saved && (saved->order.empty() || saved->order == order_checksum(record));
  if (is_same_run && !has_chain(lines, saved->ledger)) replay.miss_end(saved->step);
  return std::move(replay).finish(saved);
}

}  // namespace tokamak
