// What a run tells of its steps: a line each of metrics.jsonl, some for the observer, and the error that ends training
// that has diverged. Tests: tests/run/step_reporter_test.cpp.
#pragma once

#include "checkpoint/known_good.h"
#include "model/model.h"
#include "run/tensorboard.h"
#include "run/train_observer.h"

#include <vector>

namespace tokamak {

struct RunConfig;

/// A step's work, and the most that the machine does.
struct StepWork {
  double tokens = 0;    // of all ranks
  FlopsPerToken flops;  // the model's
  double peak = 0;      // FLOP/s of all ranks together (model/utilization.h)
};

class StepReporter {
 public:
  /// The run goes on after `done` steps, from a checkpoint with `good`. `config` and `observer` must outlive the
  /// reporter. `writes`: metrics.jsonl.
  StepReporter(const RunConfig& config, const StepWork& work, int64_t done, TrainObserver& observer, bool writes = true,
               const KnownGoodState& good = {});

  /// The last step that metrics.jsonl told of before this start.
  int64_t reached() const { return metrics_ ? metrics_->reached() : 0; }

  /// The validation losses that metrics.jsonl told of before this start.
  ValLosses val_losses() const { return metrics_ ? metrics_->val_losses() : ValLosses(); }

  /// record() and show().
  void report(StepMetrics metrics);
  /// Completes what a step gave with rates and the time, and writes its line. Throws UserError when training has
  /// diverged. True when the step shows that the newest checkpoint is good (checkpoint/known_good.h).
  bool record(StepMetrics& metrics);
  /// The validation loss after a step that is recorded.
  void add_val_loss(StepMetrics& metrics, double loss);
  /// What a shadow of it gave.
  void add_shadow(StepMetrics& metrics, ShadowMetrics shadow);
  /// What train.tasks gave after it.
  void add_tasks(StepMetrics& metrics, std::vector<TaskMetric> tasks);
  /// All steps so far are recorded and on the disk, and their state is about to be saved; is saved.
  void saving() const;
  void saved(int64_t step) { good_.saved(step); }
  const KnownGoodState& known_good() const { return good_.state(); }

  /// Whether the step before this start was recorded without its validation loss; and that loss.
  bool lacks_val_loss() const { return metrics_ && metrics_->can_take_val_loss(); }
  void add_missing_val_loss(double loss);

  /// A text that the model wrote: a line of samples.jsonl.
  void add_sample(int64_t step, const std::string& text);

  /// Tells the observer of a step that is recorded; of the means since it was last told, where they are due. In the
  /// time of those, and in what follows from it, the first step of this start counts only where it is alone.
  void show(const StepMetrics& metrics);

  /// Share of the time of steps spent waiting for data. Not of the first ones, which wait for files to be opened and
  /// for batches that are not made ahead yet; so 0 for a run of few steps.
  double data_wait() const { return total_ms_ > 0 ? waited_ms_ / total_ms_ : 0; }

 private:
  void set_rates(StepMetrics& metrics) const;
  StepMetrics take_means();
  void count_time(const StepMetrics& metrics);
  void add_memory(StepMetrics& metrics);
  void require_progress(const StepMetrics& metrics) const;

  const RunConfig& config_;
  StepWork work_;
  TrainObserver& observer_;
  std::optional<MetricsWriter> metrics_;
  std::optional<TensorBoardWriter> board_;  // where it is asked for
  KnownGood good_;
  std::vector<StepMetrics> unshown_;     // steps since the observer was told of means
  double memory_told_ = 0;               // when memory was told last, in seconds
  int64_t skipped_ = 0;                  // steps up to the last that were not applied
  double average_ms_ = 0;                // of a step but the first; 0: there was none
  int64_t counted_ = 0;                  // steps of this start
  double total_ms_ = 0, waited_ms_ = 0;  // of all steps but the first ones, and waiting for data in them
};

}  // namespace tokamak
