// How fast a target computes a node, by what kind of work it is.
#pragma once

#include "config/precision.h"
#include "graph/op_def.h"
#include "graph/target.h"

namespace tokamak {

/// FLOP/s: attention at its own rate, of f32 at no more than a share of that of f32's products, matmuls by the formats
/// on their node (of the slower one where the operands' differ), all else at the pointwise rate.
double flop_rate(const Graph& graph, const Node& node, const Target& target);

/// FLOP/s of attention with a causal mask over so many positions, T: of what is counted, T^2 / 2 pairs of a query and a
/// key. What is computed is half a tile more for each query, T (T + tile) / 2.
double attention_rate(const Target& target, double causal_length);

/// What a node takes for its random numbers, beside its FLOPs or bytes.
double draw_seconds(const Cost& cost, const Target& target);

/// FLOP/s of the matmuls that a run of this precision (a resolved one) has most of.
double matmul_rate(const Target& target, Precision precision);

}  // namespace tokamak
