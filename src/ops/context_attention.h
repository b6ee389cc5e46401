// Causal attention of sequences that a mesh axis of N ranks cuts in a zig-zag: of 2N chunks rank r has chunk r, its
// early one, and chunk 2N - 1 - r, its late one (a cut of two mirrored blocks). Keys and values are gathered. A rank's
// chunks see themselves, and all chunks before them, r and 2N - 1 - r of them: on every rank 2N - 1 pairs of two
// chunks, and so half of all there is to compute. All ranks run one graph:
//
//   N pairs       late queries with the early chunk of rank s, s = 0 ... N - 1: seen on every rank
//   N - 1 turns   on ranks r > s early queries with the early chunk of rank s, on the others late queries with the late
//                 chunk of rank s + 1
//
// What comes of a chunk's pairs is put together by the logarithms of the softmaxes' normalisers (ring attention: Liu et
// al., "Ring Attention with Blockwise Transformers", 2023). Any kernel of attention will do. Legend: B batch, t a
// chunk's time, C width, H heads, D = C / H. Tests: tests/ops/sharding_rules_test.cpp.
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
