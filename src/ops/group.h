// A node with a body, a graph of its own, that runs as one kernel.
#pragma once

#include "graph/graph.h"

namespace tokamak {

namespace op {
extern const OpDef group;
}  // namespace op

}  // namespace tokamak
