// A step within compile.memory_budget_gib that computes no more again than it must. What choose_recompute counts
// differs from what the step takes in the end: it comes before fusion, before buckets are gathered ahead, and before
// what is made of parameters once a step leaves the program. Tests: tests/compile/fill_budget_test.cpp.
#pragma once

#include "compile/compiled_step.h"

#include <functional>

namespace tokamak {

/// Compiles with what choose_recompute is told until the intermediate values take 0.95 to 1 of `asked` GiB, or nothing
/// is computed again: the step of most that fits, or else of least. Without a budget (0) once.
CompiledStep fill_budget(double asked, const std::function<CompiledStep(double told)>& compile);

}  // namespace tokamak
