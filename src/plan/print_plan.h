// A plan as text: exact and stable for tests that compare plans, and as a table of kernels for people.
// Tests: tests/plan/print_plan_test.cpp.
#pragma once

#include "plan/plan.h"

#include <span>
#include <string>

namespace tokamak {

/// Sizes, launches in order with the location of every operand, copies at the end. Values have the numbers of the
/// graph; %7@64 lies 64 bytes into the arena, %1@name in the storage of that argument. A launch beside the others says
/// so, "on stream 1"; "after 7" is the node of the other stream that it waits for.
///
///   plan step: arena 128, parameters 64, states 0, inputs 4
///   0 mul(%0@x, %1@w) -> %2@0
///   copy %1@w = %2@0
std::string print_plan(const Plan& plan);

/// Table of kernels, equal ones in one line, by share of the predicted time: shape, FLOPs, bytes, FLOP/byte, predicted
/// ms, compute- or memory-bound; then totals and memory by kind. At most `max_lines` kernels, the rest in one line.
/// With `measured`, the seconds that each of the plan's launches took, also those and the rate that they make.
std::string format_kernels(const Plan& plan, size_t max_lines = 40, std::span<const double> measured = {});

/// Table of the plan's collectives by op and axis: how many, of how many tensors, what a rank sends, predicted ms and
/// which of those other work hides; then the predicted time of the run. Nothing when there are none.
std::string format_collectives(const Plan& plan);

/// The op's name; for a group its kind and the ops in it, shortened: flat[mul add*2 gelu].
std::string kernel_label(const Node& node, size_t max_length = 40);

}  // namespace tokamak
