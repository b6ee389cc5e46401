// Attention of packed q, k and v over a whole sequence, and its gradient.
#pragma once

#include "graph/graph.h"

#include <algorithm>

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef attention, attention_grad;
}  // namespace op

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = true;
  double scale = 1;
  double dropout = 0;  // of the probabilities; then rng must be given
  int64_t random_stream = 0;
  int64_t window = 0;  // keys that a position sees at most, itself included, as `documents` has it; 0: not known
};
/// Packed projection qkv (B, T, 3C), q|k|v each heads x D -> (B, T, C). With documents i32 (B, T), which gives for each
/// position the first one of its document, a position attends to its own document alone.
ValueId attention(GraphBuilder& g, ValueId qkv, const AttentionOptions& options, ValueId rng = kNoValue,
                  ValueId documents = kNoValue);

/// AttentionOptions::window of a node: what it costs goes by it.
int64_t attention_window(const Attrs& attrs);

/// Keys that a causal query sees on average, in a sequence of so many positions.
inline double causal_keys(double positions, int64_t window) {
  double most = window > 0 ? std::min(double(window), positions) : positions;
  return most - most * most / (2 * positions);
}

}  // namespace tokamak
