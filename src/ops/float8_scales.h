// Scales of activations in eight bits, of many in one node: of what norms make, and of GELU of its products.
#pragma once

#include "graph/graph.h"

#include <array>
#include <span>
#include <vector>

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef float8_scales;
}  // namespace op

/// How much longer rounding to eight bits makes a product's row and column together.
inline constexpr double kFloat8Rounding = 1.14;

/// What no element of an activation is larger than: of a norm's result n * gain + bias, where |n| is at most
/// sqrt(width), sqrt(width) max|gain| + max|bias|. Of its product with a matrix, and GELU of that: by Cauchy and
/// Schwarz the longest row times the longest column, and the product's own bias; rounding both to eight bits makes them
/// longer by 1/16 at most.
struct Float8Bound {
  int64_t width = 0;
  ValueId gain = kNoValue, bias = kNoValue;  // vectors; none: all are 1, and 0
  ValueId column = kNoValue;                 // f32: the length of the longest column; none: of the norm itself
  ValueId column_bias = kNoValue;
};

struct Float8Scale {
  ValueId scale = kNoValue,
          inverse = kNoValue;  // f32: what values have to be multiplied by where they are used, and before
};

std::vector<Float8Scale> float8_scales(GraphBuilder& g, std::span<const Float8Bound> bounds);

/// Of such a node.
std::vector<Float8Bound> float8_bounds(const Node& node);

/// Given the largest magnitudes of the four (those that there are), and how each operation's result is rounded.
struct Float8Limits {
  double scale, inverse;
};
Float8Limits limits_of(const Float8Bound& bound, const std::array<double, 4>& largest, double (*rounded)(double));
/// The four operands in their order.
std::array<ValueId, 4> operands_of(const Float8Bound& bound);

/// The length of a norm's row, beside which a product's has room for rounding.
double float8_row_length(const Float8Bound& bound);

}  // namespace tokamak
