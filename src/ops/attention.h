// Attention of packed q, k and v: of a whole sequence, its gradient, and of the next tokens with a cache.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef attention, attention_grad, attention_decode;
}  // namespace op

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = true;
  double scale = 1;
  double dropout = 0;  // of the probabilities; then rng must be given
  int64_t stream = 0;
};
/// Packed projection qkv (B, T, 3C), q|k|v each heads x D -> (B, T, C). With documents i32 (B, T), which gives for each
/// position the first one of its document, a position attends to its own document alone.
ValueId attention(GraphBuilder& g, ValueId qkv, const AttentionOptions& options, ValueId rng = kNoValue,
                  ValueId documents = kNoValue);
/// For generation: qkv (B, t, 3C) of the next t tokens, cache (B, Tmax, 2C), position i32 (B) of each row's first one
/// -> out (B, t, C), new cache. A token that has no place in the cache is not stored, and its output is NaN.
std::pair<ValueId, ValueId> attention_decode(GraphBuilder& g, ValueId qkv, ValueId cache, ValueId position,
                                             int64_t heads, double scale);

}  // namespace tokamak
