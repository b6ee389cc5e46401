// The optimizer's step of one tensor, and of many in one node; nodes of them are made by autodiff and fused_optimizer.
#pragma once

#include "graph/graph.h"

namespace tokamak {

namespace op {
extern const OpDef adamw, multi_adamw;
}  // namespace op

/// Of the adamw node that stands for one tensor of a multi_adamw node.
Attrs adamw_attrs(const Node& multi_adamw, size_t tensor);

}  // namespace tokamak
