// Settings that somebody has chosen and that can do nothing beside the others: an eval_every beyond the end of the run,
// mesh.zero on one rank. Each is told once, when a run begins. Tests: tests/config/idle_settings_test.cpp.
#pragma once

#include "config/command_line.h"

#include <string>
#include <vector>

namespace tokamak {

struct RunConfig;

/// What a run's settings take effect on, beside one another.
struct RunPlace {
  bool is_gpu = false;
  bool trains = false;        // else only a step is looked at: what concerns the length of the run is not told
  bool all_prepared = false;  // all data is folders of `tokamak prepare`
};

/// Keys that the run's family of models, and the rule of its update, do not read (config/own_options.h).
struct UnreadOptions {
  std::vector<std::string> by_family, by_optimizer;
};

/// A line for each of them: "compile.loss_scale = 1024.0 has no effect: compile.precision is bf16, not fp16". `run` has
/// its precision and mesh.data settled. Nothing is told of defaults, nor of what a run wrote down itself.
std::vector<std::string> idle_settings(const RunConfig& run, const GivenOptions& given, const RunPlace& place,
                                       const UnreadOptions& unread);

}  // namespace tokamak
