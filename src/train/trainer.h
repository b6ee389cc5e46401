// The training loop: data, steps, metrics, validation, samples, checkpoints. It prints nothing; an observer does.
#pragma once

#include "backend/backend.h"
#include "graph/platform.h"
#include "train/metrics.h"
#include "train/start_phases.h"

#include <filesystem>
#include <functional>
#include <string>

namespace tokamak {

struct RunConfig;

/// What the loop tells as it goes; every call comes from the thread that called train().
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void message(const std::string& text) = 0;                  // a line for the user
  virtual void started(const std::vector<StartPhase>& /*phases*/) {}  // from train()'s begin to the first step's end
  virtual void step(const StepMetrics& metrics, int64_t total_steps, double eta_seconds) = 0;
  virtual void sample(int64_t step, const std::string& text) = 0;
  virtual void saved(int64_t step, const std::filesystem::path& path) = 0;
};

struct TrainSummary {
  int64_t steps = 0;  // done in all, earlier runs included
  int64_t total_steps = 0;
  bool stopped = false;  // by `stop`
  std::optional<double> val_loss;
  std::optional<double> bits_per_byte;
  double data_wait = 0;  // share of the time of steps, but the first, spent waiting for data
};

/// Trains until train.steps, or until stop() says so between steps; then saves. Continues from the newest good
/// checkpoint of train.out if train.resume is set. Throws UserError for bad data or settings, before any work is lost.
TrainSummary train(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer,
                   const std::function<bool()>& stop);

}  // namespace tokamak
