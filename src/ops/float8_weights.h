// Weights of products in eight bits, many in one node: their scales, and their copies in the layouts that products
// read.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef float8_weights;
}  // namespace op

/// What is made of a weight.
struct StoredCopies {
  bool plain = false, turned = false;
  bool longest = false;  // beside copies
};

/// What there is of one weight; kNoValue: no such copy.
struct Float8Weight {
  ValueId plain = kNoValue, turned = kNoValue;  // f8e4m3, of the weight's shape, and transposed
  ValueId scale = kNoValue;                     // f32: what the copies have to be multiplied by
  ValueId longest = kNoValue;  // f32: the length (the root of the sum of squares) of its longest column
};

/// Of matrices in bf16 or f32, of which f32 is rounded to bf16 before; their sizes are multiples of 16. `stored` says
/// for each which copies are made: of one at least.
std::vector<Float8Weight> float8_weights(GraphBuilder& g, ValueIds weights, std::span<const StoredCopies> stored);

/// Of such a node, by weight.
std::vector<StoredCopies> stored_copies(const Node& node);
std::vector<Float8Weight> float8_outputs(const Node& node);

/// The index of the weight that an output is made of.
size_t weight_of_output(const Node& node, ValueId output);

}  // namespace tokamak
