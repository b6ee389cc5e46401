// Which settings make a training step fit a memory for which it is too large. Pure: nothing is allocated, but the step
// is compiled several times. Tests: tests/compile/memory_advice_test.cpp.
#pragma once

#include "compile/step_compiler.h"

#include <string>
#include <vector>

namespace tokamak {

/// The same optimizer step in another way that fits.
struct MemoryRemedy {
  RunConfig config;
  std::string settings;  // on the command line: "--train.batch=4 --train.total_batch=16384"
  std::string effect;    // "the same step in 4 parts"
  int64_t bytes = 0;     // planned peak
};

/// The largest micro-batch that fits; recomputation within the memory that is left; where neither is enough, both.
/// Empty where that is not enough either.
std::vector<MemoryRemedy> find_memory_remedies(const ResolvedRun& run, const Platform& platform,
                                               int64_t available_bytes);

/// The same in words, to end an error with.
std::string memory_advice(const ResolvedRun& run, const Platform& platform, int64_t available_bytes);

/// "does not fit: ..." with the same at its end, for a step, of a pipeline its fullest stage, that needs more; else
/// nothing.
std::string too_large_note(const CompiledStep& step, const Platform& platform, int64_t available_bytes);

/// What is told where recomputing all that can be leaves more intermediate values than the budget has room for; else
/// nothing.
std::string budget_warning(int64_t intermediate_bytes, double budget_gib);

/// Throws UserError, with that at its end, when the step needs more.
void require_fits(const CompiledStep& step, const Platform& platform, int64_t available_bytes);

}  // namespace tokamak
