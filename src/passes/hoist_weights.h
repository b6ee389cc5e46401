// Takes out of programs that run several times in a step what they make of parameters alone, as a program of its own,
// "weights", which runs once before: casts to a low type, what gathers the parameters that ZeRO cuts, and what puts
// such copies side by side. What it makes is left in states of Role::kWeights, named after the parameter and what is
// done to it: programs that make the same of the same parameters read the same states. With eight bits
// (passes/float8_products.h) it also makes the scales and casts of parameters, as those would cost each run as much as
// the products save.
//
//   param w = %0 {cuts="data:2@0"}       weights:                     micro_batch:
//   %2 = cast(%0)                          %2 = cast(%0)                state weights.w.cast.all_gather = %1
//   %3 = all_gather(%2)            ->      %3 = all_gather(%2)          ... = f(%1)
//   ... = f(%3)                            update weights.w.cast.all_gather = %3
//
// Tests: tests/passes/hoist_weights_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

struct HoistedWeights {
  Graph rest, weights;
};

/// Collectives may be joined already (passes/bucket.h). Where nothing is taken, `weights` has no nodes. Within a memory
/// budget casts that no gather reads stay, but for those to eight bits, as they may be made again for the backward
/// pass; with ZeRO 3 all do, as gathered parameters are not kept. `suffix` is that of a pipeline's chunk: "weights.2",
/// "weights.2.<parameter>...".
HoistedWeights hoist_weights(const Graph& graph, const PassContext& context, const std::string& suffix = {});

}  // namespace tokamak
