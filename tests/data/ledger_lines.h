// Ledgers for tests: lines as the trainer writes them, each chained to the one before.
#pragma once

#include <vector>

#include "data/ledger_record.h"

namespace tokamak {

class LedgerLines {
 public:
  explicit LedgerLines(const DataRecord& record, int64_t samples_per_step = 4)
      : order_(order_checksum(record)), samples_per_step_(samples_per_step) {}

  /// The run goes on after `step`; steps up to `reached` were done before.
  LedgerLines& start(int64_t step, int64_t reached = 0) {
    return add({.event = LedgerLine::Event::kStart, .step = step, .sample = sample(step), .reached = reached});
  }
  LedgerLines& checkpoint(int64_t step) {
    return add({.event = LedgerLine::Event::kCheckpoint, .step = step, .sample = sample(step)});
  }
  LedgerLines& end(int64_t step) {
    return add({.event = LedgerLine::Event::kEnd, .step = step, .sample = sample(step)});
  }

  /// Steps after `step` have another number of samples.
  LedgerLines& change_batch(int64_t step, int64_t samples_per_step) {
    first_sample_ = sample(step);
    first_step_ = step;
    samples_per_step_ = samples_per_step;
    return *this;
  }

  LedgerLines& add(LedgerLine line) {
    line.samples_per_step = samples_per_step_;
    line.reached = std::max(line.reached, line.step);
    line.order = order_;
    line.time = 1e9 + double(lines_.size());
    line.chain = ledger_chain(lines_.empty() ? "" : lines_.back().chain, line);
    lines_.push_back(line);
    return *this;
  }

  /// After a line was changed: as if it had been written so.
  static void chain_again(std::vector<LedgerLine>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) lines[i].chain = ledger_chain(i == 0 ? "" : lines[i - 1].chain, lines[i]);
  }

  const std::vector<LedgerLine>& lines() const { return lines_; }

 private:
  int64_t sample(int64_t step) const { return first_sample_ + (step - first_step_) * samples_per_step_; }

  std::string order_;
  int64_t samples_per_step_;
  int64_t first_step_ = 0, first_sample_ = 0;
  std::vector<LedgerLine> lines_;
};

}  // namespace tokamak
