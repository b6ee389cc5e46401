// Causal attention of a rank's rows of a sequence that a mesh axis of N ranks cuts in a zig-zag (ops/zigzag.h), to the
// keys and values of all ranks, which are gathered. So every rank sees the same share of what causal attention sees,
// 1 / N, and its work is one node:
//
//   context_attention(qkv (B, T, 3C), kv (N B, T, 2C), coordinate i32[][, rng][, documents]) -> as attention's
//   context_attention_grad(qkv, kv, coordinate, out, lse, dout[, rng][, documents]) -> dq (B, T, C), dkv as kv
//
// kv is what the ranks have, one after the other. dkv are terms of a sum over the ranks.
// Documents, i32 (B, T), are those of the rank's rows, their numbers positions in the sequence; dropout's random
// numbers are those of the whole. Legend: B batch, T a rank's rows of a sample, C width, H heads. Tests:
// tests/ops/context_attention_test.cpp, tests/ops/sharding_rules_test.cpp.
#pragma once

#include "graph/op_def.h"
#include "ops/zigzag.h"

namespace tokamak {

namespace op {
extern const OpDef context_attention, context_attention_grad;
}  // namespace op

/// How the rows of either op lie, but for the coordinate, which is data.
ZigZag zigzag_of(const NodeSpec& spec);

/// Whether a node of attention or attention_grad can be computed so: it is causal, without sums.
bool can_cut_time(const NodeSpec& spec);

/// Sharding::place of attention and attention_grad, whose time is cut.
ValueIds place_attention(GraphBuilder& g, const Node& part, std::span<const ValueId> in, const PlacedCut& cut,
                         std::span<const PlacedCut> numbered);
ValueIds place_attention_grad(GraphBuilder& g, const Node& part, std::span<const ValueId> in, const PlacedCut& cut,
                              std::span<const PlacedCut> numbered);

}  // namespace tokamak
