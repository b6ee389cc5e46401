// softmax and layer_norm along the last dim, with their gradients.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef softmax, softmax_grad, layer_norm, layer_norm_grad, layer_norm_grad_params;
}  // namespace op

ValueId softmax(GraphBuilder& g, ValueId x);  // along the last dim
/// y = (x - mean) * rstd * gain (+ bias), along the last dim; bias may be kNoValue.
ValueId layer_norm(GraphBuilder& g, ValueId x, ValueId gain, ValueId bias, double eps);

}  // namespace tokamak
