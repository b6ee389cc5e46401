// Sizes of nodes of attention, and where those of attention, context_attention and their gradients have their optional
// operands: behind the tensors come rng (with dropout; i32[2], more as ops/element_place.h says), documents
// (i32[B,T]): for each position the first of its document, to which it must not look before; and of attention
// and attention_grad with float8=true a factor (f32): that of what is rounded to eight bits.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

/// Batch, time, width, heads and a head's width of the packed projection qkv (B, T, 3C), the first input.
struct AttentionDims {
  int64_t B, T, C, H, D;
};
/// UserError where the input is no such projection, or its heads do not divide the width.
AttentionDims attention_dims(const NodeSpec& spec);

/// Places among the node's inputs; -1: the node has none.
struct AttentionOperands {
  int rng = -1, documents = -1, factor = -1;
};

/// Of a node, or of the parts of one that is being made: its op, attributes and number of inputs.
AttentionOperands attention_operands(const OpDef& op, const Attrs& attrs, size_t inputs);
inline AttentionOperands attention_operands(const Node& node) {
  return attention_operands(*node.op, node.attrs, node.inputs.size());
}

/// UserError where the operands that are optional are not of the types that the others ask for.
void check_optional_operands(const NodeSpec& spec, const AttentionDims& dims);

/// The operand at this place, null where there is none.
template <typename T>
const T* operand(std::span<const T* const> inputs, int place) {
  return place < 0 ? nullptr : inputs[size_t(place)];
}

}  // namespace tokamak
