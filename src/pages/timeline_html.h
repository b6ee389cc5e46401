// The predicted timeline of a rank's step as one self-contained HTML page: no script, nothing from the network. Tests:
// tests/pages/timeline_html_test.cpp.
#pragma once

#include "compile/pipe_compiler.h"

#include <string>

namespace tokamak {

/// For each program of the step, its streams' launches over time, collectives by axis and where nothing hides them.
std::string timeline_html(const CompiledStep& step, const Target& target);

/// For a pipeline, what its stages do when; forward and backward passes and, in the colour of updates, gradients of
/// parameters that come later.
std::string timeline_html(const CompiledPipeline& pipeline, const Target& target);

}  // namespace tokamak
