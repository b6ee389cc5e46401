// The training loop: data, steps, metrics, validation, samples, checkpoints. It prints nothing; an observer does.
#pragma once

#include "backend/backend.h"
#include "exec/mesh_ranks.h"
#include "graph/platform.h"
#include "run/memory_states.h"
#include "run/step_watcher.h"
#include "run/train_observer.h"

#include <functional>
#include <optional>
#include <string>

namespace tokamak {

struct RunConfig;

struct TrainSummary {
  int64_t steps = 0;  // done in all, earlier runs included
  int64_t total_steps = 0;
  bool stopped = false;  // by `stop`
  std::optional<double> val_loss;
  std::optional<double> bits_per_byte;
  int64_t val_windows = 0;      // that both were measured on,
  int64_t all_val_windows = 0;  // of those that the validation data has
  std::string goodput;          // a line on how the time of all starts was spent; of the rank that leads
  double data_wait = 0;         // share of the time of steps, but the first ten, spent waiting for data
};

/// Trains until train.steps (the length is said so: run/train_length.h), or until stop() says so between steps; then
/// saves. Continues from the newest good checkpoint of train.out if train.resume is set. Throws UserError for bad data
/// or settings, before any work is lost. With `ranks`, those of config.mesh, all ranks call it, each with a backend of
/// its own: rank 0 writes the files of train.out and chooses; a stop that one of them is asked for stops them all after
/// the same step. `watcher`: null: nobody; else it must outlive the call. `memory`: where states are kept beside the
/// checkpoints; it is also looked at for one to go on from.
TrainSummary train(const RunConfig& config, const Platform& platform, Backend& backend, TrainObserver& observer,
                   const std::function<bool()>& stop, const MeshRanks* ranks = nullptr, StepWatcher* watcher = nullptr,
                   const MemoryStates& memory = {});

}  // namespace tokamak
