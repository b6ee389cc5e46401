// RMS normalisation along the last dim, with its gradients.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef rms_norm, rms_norm_grad, rms_norm_grad_gain;
}  // namespace op

/// y = x * rstd * gain, rstd = 1 / sqrt(mean(x^2) + eps), along the last dim; the gain may be kNoValue.
ValueId rms_norm(GraphBuilder& g, ValueId x, ValueId gain, double eps);

}  // namespace tokamak
