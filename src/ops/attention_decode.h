// Attention of the next tokens, with a cache of the keys and values before them.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef attention_decode;
}  // namespace op

/// For generation: qkv (B, t, 3C) of the next t tokens, cache (B, Tmax, 2C), position i32 (B) of each row's first one
/// -> out (B, t, C), new cache. A token that has no place in the cache is not stored, and its output is NaN.
std::pair<ValueId, ValueId> attention_decode(GraphBuilder& g, ValueId qkv, ValueId cache, ValueId position,
                                             int64_t heads, double scale);

}  // namespace tokamak
