// metrics.jsonl: one JSON object a line, one line a step, whatever happened to the processes that wrote it.
// Tests: tests/checkpoint/metrics_test.cpp.
#pragma once

#include "base/file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// A number that a task gave after a step (evaluate/task.h).
struct TaskMetric {
  std::string task, name;
  double value = 0;
};

/// A micro-batch with the parameters after a step, as the run computes it, with FP8, and in BF16 (run/shadow.h).
struct ShadowMetrics {
  double loss = 0, bf16_loss = 0;
  double cosine = 0;  // of the angle between both gradients, of all parameters; NaN: that in BF16 is no number
  std::map<std::string, double> cosines;  // the same of the parameters of each kind (ops/parameter_kind.h)
  double least = 0;                       // of these; without kinds whose gradients are next to nothing
  std::string least_kind;                 // whose it is
  int64_t saturated = 0;  // elements of gradients that were too large for eight bits, and became the largest number
};

/// What is known of one optimizer step.
struct StepMetrics {
  int64_t step = 0;  // steps done, this one included
  double loss = 0;
  double grad_norm = 0;  // before clipping
  bool applied = true;   // false: grad_norm is not finite, and the step changed nothing
  double lr = 0;
  double ms = 0;  // wall time of the step
  double tokens_per_second = 0;
  double model_gflops = 0;              // 1e9 FLOPs of the model a second, of all ranks (model/utilization.h)
  double mfu = 0;                       // which share of the peak of all ranks that is; 0: unknown
  double data_wait_ms = 0;              // of `ms`, spent waiting for data
  double wall_seconds = 0;              // since the epoch
  int64_t steps = 1;                    // whose means these are; the line in the file is always of one
  std::optional<double> val_loss;       // when this step was evaluated
  std::vector<TaskMetric> tasks;        // when it was asked train.tasks
  std::optional<double> memory_mib;     // of the process; about once a second
  std::optional<double> loss_scale;     // with fp16: what the loss was multiplied by,
  std::optional<int64_t> skipped;       // and how many steps were skipped so far for an overflow
  std::optional<ShadowMetrics> shadow;  // every train.shadow_every
  std::optional<uint64_t> digest;  // of loss, grad_norm and the parameters after the step, every train.digest_every
};

/// The validation loss after a step.
struct ValLoss {
  int64_t step = 0;
  double loss = 0;

  bool operator==(const ValLoss&) const = default;
};
using ValLosses = std::vector<ValLoss>;

/// Of the steps that the file tells of, by step, what is asked for later: losses, norms, times and digests; what is no
/// number is NaN. Empty where there is no file. Lines that are damaged are read over.
std::map<int64_t, StepMetrics> read_metrics(const std::filesystem::path& metrics);

/// Seconds of a step: the median of the last two thirds of the steps that the file tells of, as the first ones warm up.
/// UserError where they are fewer than 12.
double usual_step_seconds(const std::filesystem::path& metrics);

/// One line of JSON, without its newline. Numbers that are not finite become null.
std::string format_metrics(const StepMetrics& metrics);

class MetricsWriter {
 public:
  /// `resumed_step`: the run goes on after this step, so lines of later ones (and a torn last line) are dropped, and
  /// damaged or repeated ones are set aside in a file beside it; nothing: a fresh run, the file starts empty.
  MetricsWriter(const std::filesystem::path& path, std::optional<int64_t> resumed_step);

  /// Hands the line to the system whole: killing the process at any moment loses at most a line that was not yet
  /// written. A line of the step that was written last takes that one's place; it must not be shorter.
  void write(const StepMetrics& metrics);

  /// Makes sure that all lines are on the disk. To be called before a state is saved that they lead to.
  void sync() const;

  /// Whether the file, as it was opened, ends with the line of the step that the run goes on after, without a
  /// validation loss; and completes that line. Not behind a write().
  bool can_take_val_loss() const { return !resumed_line_.empty(); }
  void add_val_loss(double loss);

  /// The last step that the file told of when it was opened, whether or not its line was dropped; 0: none.
  int64_t reached() const { return reached_; }

  /// The validation losses that the file told of when it was opened, up to the step that the run goes on after.
  const ValLosses& val_losses() const { return val_losses_; }

  /// A sentence on what was wrong with the file when it was opened: lines set aside, steps without a line; or empty.
  const std::string& warning() const { return warning_; }

 private:
  void repair(int64_t resumed_step);
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::string warning_;
  ValLosses val_losses_;
  std::string resumed_line_;  // that can take a validation loss
  FileDescriptor fd_;
  int64_t reached_ = 0;
  int64_t size_ = 0;                      // of the file
  int64_t last_step_ = -1, last_at_ = 0;  // the line that was written last, and where it begins
};

}  // namespace tokamak
