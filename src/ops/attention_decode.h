// Attention of the next tokens, with a cache of the keys and values before them.
#pragma once

#include "graph/graph.h"
#include "ops/attention_operands.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef attention_decode;
}  // namespace op

/// Of a node: it knows the width of a head, as a rank of a mesh may have some of the heads alone.
AttentionDims attention_decode_dims(const NodeSpec& spec);

/// How many keys a token sees, itself included; 0: all.
int64_t attention_decode_window(const Attrs& attrs);

/// For generation: qkv (B, t, 3C) of the next t tokens, cache (B, Tmax, 2C), position i32 (B) of each row's first one
/// -> out (B, t, C), new cache. With a window, a token attends to so many, of which it is the last. A token that has no
/// place in the cache is not stored, and its output is NaN.
std::pair<ValueId, ValueId> attention_decode(GraphBuilder& g, ValueId qkv, ValueId cache, ValueId position,
                                             int64_t heads, double scale, int64_t window = 0);

}  // namespace tokamak
