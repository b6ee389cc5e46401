// What ops of many tensors in one kernel share, such as multi_cast, float8_scales and float8_weights.
// Tests: tests/ops/many_tensors_test.cpp.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

/// A cost rule: every operand is read or written once, and each element of each input takes so many FLOPs.
template <int kFlops>
Cost cost_of_elements(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs, 0);
  for (const ValueType& type : spec.inputs) cost.flops += kFlops * double(num_elements(type.shape));
  return cost;
}

/// The record of an op that takes any number of tensors, each as it is; it names its cost rule, this or its own.
constexpr OpDef of_many_tensors(OpDef op) {
  op.max_inputs = -1;
  op.autocast = Autocast::kFull;
  return op;
}

}  // namespace tokamak
