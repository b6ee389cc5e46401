// Causal attention of sequences that a mesh axis cuts: a rank has the queries, keys and values of consecutive
// positions, and all ranks' keys and values are gathered. Its queries meet its own keys, and then each earlier rank's,
// all of which they see; what comes of that is put together by the logarithms of the softmaxes' normalisers (ring
// attention: Liu et al., "Ring Attention with Blockwise Transformers", 2023). As all ranks run one graph, they also
// compute with the keys of later ranks, and that counts for nothing. Any kernel of attention will do. Legend: B batch,
// t a rank's time, T all, C width, H heads, D = C / H. Tests: tests/ops/sharding_rules_test.cpp.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

/// Whether a node of attention or attention_grad can be computed so: without dropout, documents and sums.
bool can_cut_time(const NodeSpec& spec);

/// Sharding::place of attention and attention_grad, whose time is cut.
std::vector<ValueId> place_attention(GraphBuilder& g, const Node& part, std::span<const ValueId> in,
                                     const PlacedCut& cut);
std::vector<ValueId> place_attention_grad(GraphBuilder& g, const Node& part, std::span<const ValueId> in,
                                          const PlacedCut& cut);

}  // namespace tokamak
