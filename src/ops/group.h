// Nodes with a body, a graph of its own, that run as one kernel: ops/group_form.h says what the bodies of the first
// three are.
#pragma once

#include "graph/graph.h"

namespace tokamak {

namespace op {
extern const OpDef flat, row, column, fused_matmul;
}  // namespace op

}  // namespace tokamak
