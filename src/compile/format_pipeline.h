// A pipeline as text for people. Tests: tests/compile/format_pipeline_test.cpp.
#pragma once

#include "compile/pipe_compiler.h"

#include <string>

namespace tokamak {

/// Schedule, bubble and predicted time; a table of the stages with their blocks, parameters, micro-batches in flight,
/// memory and seconds of work; and who does what when, in `width` columns of equal time:
///
///   stage 0 |001122..aa33bbccdd|   forward passes 0 to 3 and their backward passes a to d
std::string format_pipeline(const CompiledPipeline& pipeline, size_t width = 100);

}  // namespace tokamak
