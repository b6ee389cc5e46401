// The rungs of the speed ladder: which change each one makes to the run before it. Tests: tests/ladder/rungs_test.cpp.
#pragma once

#include "graph/platform.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace tokamak {

struct RunConfig;

struct Rung {
  std::string_view name;
  /// `arena_bytes`: what the intermediate values of the last kept rung take; 0 at the first rung.
  void (*switch_on)(RunConfig&, int64_t arena_bytes);
  bool optional = false;  // measured beside the last kept rung; never kept, whatever it brings
};

/// False for an optional rung that would say nothing: it changes no option of `config`, as a model's head without tying
/// cannot be untied, or the family of models refuses what it asks for.
bool applies(const Rung& rung, const RunConfig& config, int64_t arena_bytes);

/// In order; the first one switches everything off, so it needs the most memory.
std::span<const Rung> cpu_rungs();
/// The same for a GPU, in an order in which the usual PyTorch ladder goes, so that the two compare row by row.
/// `float8`: with the one that needs units for FP8, which a target of fp8_flops has.
std::span<const Rung> gpu_rungs(bool float8 = false);

/// The largest batch of `most`, `most` / 2, ... 1 with which the plan of `rung` leaves a tenth of `free_bytes` free and
/// train.total_batch is made of whole micro-batches; 1 where none does. `free_bytes` 0: unknown, everything fits.
/// `most` is rounded down to a power of two.
int64_t choose_batch(RunConfig config, const Platform& platform, const Rung& rung, int64_t free_bytes, int64_t most);

}  // namespace tokamak
