// What validation losses decide: which checkpoint is the best, and whether training ends early. A pure function of the
// losses so far, which metrics.jsonl has; all ranks have them. Tests: tests/run/validation_watch_test.cpp.
#pragma once

#include "checkpoint/metrics.h"

#include <optional>
#include <string>

namespace tokamak {

struct TrainConfig;

class ValidationWatch {
 public:
  /// `saved`: those of the losses before whose checkpoint is there. `config` must outlive it.
  ValidationWatch(const TrainConfig& config, const ValLosses& before, const ValLosses& saved);

  /// Takes in the loss after a step, whose checkpoint is there or can be made.
  void add(const ValLoss& loss);

  /// The step of the checkpoint with the lowest loss, of equal ones the first; 0: there is none, or none is kept
  /// (train.keep_best).
  int64_t best_step() const { return best_ ? best_->step : 0; }

  /// Whether train.patience evaluations, one after the other, did not improve on the lowest loss before them by more
  /// than train.min_improvement; and a sentence that says so.
  bool is_over() const;
  std::string why_over() const;

 private:
  void watch(const ValLoss& loss);
  void keep(const ValLoss& loss);

  const TrainConfig& config_;
  std::optional<ValLoss> best_;    // of those with a checkpoint
  std::optional<ValLoss> lowest_;  // that others have to improve on
  int64_t waited_ = 0;             // evaluations since
};

/// As text and back, for other ranks.
std::string to_text(const ValLosses& losses);
ValLosses val_losses_from_text(const std::string& text);

}  // namespace tokamak
