// silu(gate) * up, the hidden layer of an MLP with a gate (SwiGLU: Shazeer, "GLU variants improve Transformer", 2020),
// with gate and up side by side in the columns of one matrix, as one product gives them and takes their gradient.
// Tests: tests/ops/packed_gate_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef packed_gate, packed_gate_grad;
}  // namespace op

/// (..., H) of (..., 2 H), gate before up, in the same float type; computed in f32 inside.
ValueId packed_gate(GraphBuilder& g, ValueId packed);
/// The gradient of `packed`, of that of what packed_gate gives.
ValueId packed_gate_grad(GraphBuilder& g, ValueId dy, ValueId packed);

}  // namespace tokamak
