// The speed ladder: the same training step with one optimisation after the other switched on, predicted and measured.
#pragma once

#include "backend/backend.h"
#include "config/config.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct Rung {
  std::string_view name;
  void (*switch_on)(CompileConfig&);
};

/// In order; the first one switches everything off.
std::span<const Rung> cpu_rungs();

struct RungResult {
  std::string name;
  double ms = 0;  // an optimizer step: median of the timed ones
  double predicted_ms = 0;
  double tokens_per_second = 0;
  double speedup_step = 1;   // over the last rung that was kept
  double speedup_total = 1;  // over the first
  double gflops = 0;
  int64_t planned_bytes = 0;  // parameters, states, inputs, arena
  int64_t used_bytes = 0;     // growth of the process's resident memory
  double first_step_ms = 0;   // compiling, allocating and the first step
  bool changed = true;        // false: the plan is that of the rung before, nothing was measured again
  bool kept = true;           // false: slower here, the rungs after it go on without it
};

struct LadderOptions {
  int64_t steps = 10;
  int64_t warmup = 1;
};

/// Runs every rung of `config` on random tokens. `report` is called after each.
std::vector<RungResult> run_ladder(const RunConfig& config, const Target& target, Backend& backend,
                                   const LadderOptions& options, const std::function<void(const RungResult&)>& report);

/// As a table, and as JSON with the machine and the model.
std::string format_ladder_header();
std::string format_rung(const RungResult& result);
std::string ladder_json(const RunConfig& config, const Target& target, const std::vector<RungResult>& results);

}  // namespace tokamak
