// Rotary positions (Su et al., "RoFormer", 2021) of queries and keys, which become attention's packed projection: in
// each head of width D, columns i and i + D/2 are turned by the angle position x frequency i. Each head of keys and
// values is repeated for the group of heads of queries that reads it (Ainslie et al., "GQA", 2023).
// Tests: tests/ops/rotary_test.cpp.
#pragma once

#include "graph/op_def.h"

#include <vector>

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef rotary_qkv, rotary_qkv_grad;
}  // namespace op

/// frequency i = theta^(-2i / D), and how it is scaled for longer sequences than it was trained for: by 1 / factor.
/// With an original context of T tokens (Llama 3), frequencies that turn more than high_freq times in T stay, those
/// that turn less than low_freq times are scaled, and between both it goes over.
struct RotaryOptions {
  int64_t head_width = 2;  // D, even
  double theta = 10000;
  double factor = 1;
  int64_t original_context = 0;  // 0: all are scaled
  double low_freq = 1, high_freq = 4;
};

/// q (B, T, H D), k and v (B, T, K D), positions i32 (B, T) or (1, T) -> qkv (B, T, 3 H D); K divides H.
ValueId rotary_qkv(GraphBuilder& g, ValueId q, ValueId k, ValueId v, ValueId positions, const RotaryOptions& options);

/// Of a node of these ops, or of those of ops/packed_rotary.h.
struct RotaryDims {
  int64_t B, T, H, K, D;
  int64_t position_rows;  // B or 1
  int64_t group() const { return H / K; }
  /// Columns of q, k and v side by side.
  int64_t projected() const { return (H + 2 * K) * D; }
};
RotaryDims rotary_dims(const NodeSpec& spec);
/// D/2 frequencies, as all kernels take them; the angle is the f32 product of position and frequency.
std::vector<float> rotary_frequencies(const Attrs& attrs);

}  // namespace tokamak
