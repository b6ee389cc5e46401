#include "run/step_reporter.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/system.h"
#include "checkpoint/divergence.h"
#include "config/config.h"
#include "config/json.h"
#include "model/utilization.h"
#include "run/progress.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <span>

namespace tokamak {
namespace {

constexpr int64_t kFirstSteps = 10;  // not counted where the run waits for data

// Gradients that overflow even when scaled down this far are not numbers to begin with.
constexpr double kLowestLossScale = 1e-4;

// Steps that were not applied, one after the other, that no run recovers from: all began from the same parameters.
constexpr int64_t kMostSkipped = 20;

std::filesystem::path samples_file(const RunConfig& config) {
  return std::filesystem::path(config.train.out) / "samples.jsonl";
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

StepReporter::StepReporter(const RunConfig& config, const StepWork& work, int64_t done, TrainObserver& observer,
                           bool writes, const KnownGoodState& good)
    : config_(config), work_(work), observer_(observer), good_(good, done) {
  if (!writes) return;
  metrics_.emplace(std::filesystem::path(config.train.out) / "metrics.jsonl",
                   done > 0 ? std::optional(done) : std::nullopt);
  if (!metrics_->warning().empty()) observer_.message("warning: " + metrics_->warning());
  if (config.train.tensorboard) board_.emplace(config.train.out, done, "```\n" + to_json(config) + "\n```");
  if (done == 0) std::filesystem::remove(samples_file(config));
}

void StepReporter::report(StepMetrics metrics) {
  record(metrics);
  show(metrics);
}

bool StepReporter::record(StepMetrics& metrics) {
  set_rates(metrics);
  metrics.wall_seconds = wall_seconds();
  count_time(metrics);
  add_memory(metrics);
  if (metrics_) metrics_->write(metrics);
  if (board_) board_->write(metrics);
  if (std::string warning = skipped_warning(metrics); !warning.empty()) observer_.message(warning);
  skipped_ = metrics.applied ? 0 : skipped_ + 1;
  bool found_good = good_.add(metrics);
  require_progress(metrics);
  return found_good;
}

void StepReporter::saving() const {
  if (metrics_) metrics_->sync();
}

void StepReporter::add_missing_val_loss(double loss) {
  if (metrics_) metrics_->add_val_loss(loss);
}

void StepReporter::set_rates(StepMetrics& metrics) const {
  metrics.tokens_per_second = work_.tokens / metrics.ms * 1e3;
  Utilization used = utilization(work_.flops, metrics.tokens_per_second, work_.peak);
  metrics.model_gflops = used.flops * 1e-9;
  metrics.mfu = used.full;
}

void StepReporter::add_val_loss(StepMetrics& metrics, double loss) {
  metrics.val_loss = loss;
  if (metrics_) metrics_->write(metrics);
  if (board_) board_->write_evaluations({.step = metrics.step, .val_loss = loss});
}

void StepReporter::add_shadow(StepMetrics& metrics, ShadowMetrics shadow) {
  metrics.shadow = std::move(shadow);
  if (metrics_) metrics_->write(metrics);
  if (board_) board_->write_evaluations({.step = metrics.step, .shadow = metrics.shadow});
}

void StepReporter::add_tasks(StepMetrics& metrics, std::vector<TaskMetric> tasks) {
  metrics.tasks = std::move(tasks);
  if (metrics_) metrics_->write(metrics);
  if (board_) board_->write_evaluations({.step = metrics.step, .tasks = metrics.tasks});
}

void StepReporter::add_sample(int64_t step, const std::string& text) {
  if (!metrics_) return;
  nlohmann::ordered_json line = {{"step", step}, {"wall_seconds", wall_seconds()}, {"text", text}};
  std::ofstream file(samples_file(config_), std::ios::app);
  file << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
  if (!file)
    observer_.message("warning: the sample was not kept: " + samples_file(config_).string() + " cannot be written");
  if (board_) board_->write_text(step, "sample", text);
}

// Reading it costs a few microseconds, which steps of small models need not pay for each time.
void StepReporter::add_memory(StepMetrics& metrics) {
  constexpr double kEvery = 1;
  if (!metrics_ || metrics.wall_seconds < memory_told_ + kEvery) return;
  memory_told_ = metrics.wall_seconds;
  metrics.memory_mib = double(resident_bytes()) / kMiB;
}

void StepReporter::show(const StepMetrics& metrics) {
  int64_t total = config_.train.steps;
  double eta = double(total - metrics.step) * average_ms_ * 1e-3;
  unshown_.push_back(metrics);
  if (metrics.val_loss || metrics.step % std::max<int64_t>(config_.train.log_every, 1) == 0) {
    observer_.step(take_means(), total, eta);
  }
  observer_.progress(metrics.step, total, eta);
}

// A step that was skipped for an overflow may lack a loss and a norm. The first one of a start, which also touches all
// memory and loads kernels for the first time, says nothing of the time of those that follow.
StepMetrics StepReporter::take_means() {
  auto mean = [&](double StepMetrics::*value, std::span<const StepMetrics> steps) {
    double sum = 0;
    int64_t count = 0;
    for (const StepMetrics& step : steps) {
      if (!std::isfinite(step.*value)) continue;
      sum += step.*value;
      ++count;
    }
    return count > 0 ? sum / double(count) : unshown_.back().*value;
  };
  StepMetrics means = unshown_.back();
  for (auto value : {&StepMetrics::loss, &StepMetrics::grad_norm}) means.*value = mean(value, unshown_);
  bool has_first = counted_ == int64_t(unshown_.size()) && counted_ > 1;
  for (auto value : {&StepMetrics::ms, &StepMetrics::data_wait_ms})
    means.*value = mean(value, std::span(unshown_).subspan(has_first ? 1 : 0));
  means.steps = int64_t(unshown_.size());
  set_rates(means);
  unshown_.clear();
  return means;
}

void StepReporter::count_time(const StepMetrics& metrics) {
  if (++counted_ > kFirstSteps) {
    total_ms_ += metrics.ms;
    waited_ms_ += metrics.data_wait_ms;
  }
  average_ms_ = counted_ <= 2 ? metrics.ms : 0.9 * average_ms_ + 0.1 * metrics.ms;
}

// A step that loss scaling skipped may have lost its loss to the overflow as well.
void StepReporter::require_progress(const StepMetrics& metrics) const {
  bool rescaled = metrics.loss_scale && !metrics.applied;
  // What came behind the last checkpoint known to be good led to it, though it may have been finite.
  int64_t first_skipped = std::min(metrics.step - skipped_ + 1, good_.state().step + 2);
  if (rescaled && *metrics.loss_scale < kLowestLossScale)
    user_error(
        "[train] expected finite gradients of step {}, got an overflow even at a loss scale of {:.1e}: training has "
        "diverged or fp16 cannot hold its values. {}",
        metrics.step, *metrics.loss_scale,
        advise_after_divergence(config_.train.out, first_skipped, "with --compile.precision=bf16"));
  if (!rescaled && skipped_ >= kMostSkipped)
    user_error("[train] expected finite gradients, got none in the {} steps up to {}: training has diverged. {}",
               skipped_, metrics.step, advise_after_divergence(config_.train.out, first_skipped));
  if (!std::isfinite(metrics.loss) && !rescaled)
    user_error("[train] the loss of step {} is {}: training has diverged. {}", metrics.step,
               format_number(metrics.loss, 4),
               advise_after_divergence(config_.train.out, std::min(first_skipped, metrics.step)));
}

}  // namespace tokamak
