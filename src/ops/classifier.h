// Logits, loss and their gradients in one node; chunked_classifier makes it.
#pragma once

#include "graph/graph.h"

namespace tokamak {

namespace op {
extern const OpDef classifier;
}  // namespace op

}  // namespace tokamak
