// The optimizer's step of one tensor, and of many in one node; nodes of them are made by autodiff and fused_optimizer.
#pragma once

#include "graph/graph.h"

namespace tokamak {

namespace op {
extern const OpDef adamw, multi_adamw;
}  // namespace op

}  // namespace tokamak
