// Pointwise ops, with numpy broadcasting. Comparisons give 1 or 0. Their scalar functions are in ops/scalar_math.h.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef add, sub, mul, div, maximum, minimum, pow, less, equal, select;
extern const OpDef neg, exp, log, tanh, sqrt, rsqrt, gelu, gelu_grad, silu, silu_grad, relu2, relu2_grad, cast;
extern const OpDef stochastic_bf16;
}  // namespace op

ValueId add(GraphBuilder& g, ValueId a, ValueId b);
ValueId sub(GraphBuilder& g, ValueId a, ValueId b);
ValueId mul(GraphBuilder& g, ValueId a, ValueId b);
ValueId div(GraphBuilder& g, ValueId a, ValueId b);
ValueId maximum(GraphBuilder& g, ValueId a, ValueId b);
ValueId minimum(GraphBuilder& g, ValueId a, ValueId b);
ValueId pow(GraphBuilder& g, ValueId a, ValueId b);
ValueId less(GraphBuilder& g, ValueId a, ValueId b);
ValueId equal(GraphBuilder& g, ValueId a, ValueId b);
ValueId select(GraphBuilder& g, ValueId condition, ValueId a, ValueId b);
ValueId neg(GraphBuilder& g, ValueId a);
ValueId exp(GraphBuilder& g, ValueId a);
ValueId log(GraphBuilder& g, ValueId a);
ValueId tanh(GraphBuilder& g, ValueId a);
ValueId sqrt(GraphBuilder& g, ValueId a);
ValueId rsqrt(GraphBuilder& g, ValueId a);
ValueId gelu(GraphBuilder& g, ValueId a);
ValueId silu(GraphBuilder& g, ValueId a);            // x times the logistic function of x
ValueId relu2(GraphBuilder& g, ValueId a);           // max(x, 0)^2
ValueId cast(GraphBuilder& g, ValueId a, DType to);  // returns `a` itself when it has that type

/// `a`, of f32, as bf16: one of the two beside it, by a chance that `a` and the scalar `salt` give (scalar_math.h).
ValueId stochastic_bf16(GraphBuilder& g, ValueId a, ValueId salt);

}  // namespace tokamak
