// What a run says about itself, as pure text; printing is done in cli/. Tests: tests/run/progress_test.cpp.
#pragma once

#include "checkpoint/metrics.h"

#include <string>

namespace tokamak {

/// Of the time from a request to stop to a kill (train.grace_seconds), for what runs; the rest is for saving.
inline constexpr double kShareOfGrace = 0.5;

/// The share of a step's time above which waiting for data is worth a word.
inline constexpr double kShownDataWait = 0.01;

/// `step   120/1000 | loss 4.1234 | norm 0.98 | lr 5.9e-04 | 8.0k tok/s | ETA 7m32s`: at most `width` columns, for
/// which what matters least is left out, but never losses and norm. `| val 4.2345` after the loss when the step was
/// evaluated; `mean loss` when the metrics are means of several steps. No ETA when `eta_seconds` is negative (unknown).
/// `| data wait 5%` after the time where that is more than kShownDataWait of it.
std::string format_step_line(const StepMetrics& metrics, int64_t total_steps, double eta_seconds, size_t width = 80);

/// A line in a file has all of it.
inline constexpr size_t kAnyWidth = ~size_t(0);

/// What is about to be trained.
struct RunOutline {
  int64_t parameters = 0;
  std::string precision;
  int64_t memory_bytes = 0;  // planned
  int64_t copy_bytes = 0;    // of the host's, beside that: of the state that is being saved; 0: none is taken
  int64_t done = 0, steps = 0;
  int64_t step_tokens = 0;  // of the largest steps
  double tokens = 0;        // of all steps to come
  int64_t epoch_tokens = 0;
  double step_seconds = 0;      // predicted, of a step now,
  double seconds = 0;           // and of all steps to come
  double dollars_per_hour = 0;  // of all ranks; 0: not known
  std::string priced_as;        // the cluster whose price that is
  std::string out;
  int64_t checkpoint_every = 0;  // steps; 0: only at the end
  std::string peak;              // of all ranks, of which MFU is a share (model/utilization.h)
};

/// Five lines of it for the start of a run.
std::string format_outline(const RunOutline& outline);

/// ` 12% [====>          ] 120/1000 | ETA 7m32s`: exactly `width` columns of ASCII, so that it overwrites the line
/// before. Where that is too narrow the bar goes first, then text from the right.
std::string format_progress_bar(int64_t step, int64_t total_steps, double eta_seconds, int width);

/// With so many digits behind the point, from 1e7 on with an exponent; `nan` without the sign that some machines give
/// it.
std::string format_number(double value, int digits);

/// `45s`, `7m32s`, `1h04m`, `2d03h`.
std::string format_duration(double seconds);

/// Three digits or so with k, M, G, T: `950`, `8.0k`, `1.24M`.
std::string format_count(double value);

/// What to tell where the run would be killed before it is saved: of a step under way, which several ranks finish and
/// one gives up where it is long, and a save. Empty where there is time, or `grace` is 0.
std::string grace_warning(double grace, double step_seconds, double save_seconds, bool has_ranks);

/// What to tell of a step that was not applied. Empty for all others, and with loss scaling, which counts such steps.
std::string skipped_warning(const StepMetrics& metrics);

}  // namespace tokamak
