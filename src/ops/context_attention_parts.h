// context_attention (ops/context_attention.h) of ordinary attention, for kernels that have it of one sequence only. A
// rank's chunks see themselves, and all chunks before them, r and 2N - 1 - r of them: on every rank 2N - 1 pairs of two
// chunks. All ranks run one graph:
//
//   N pairs       late queries with the early chunk of rank s, s = 0 ... N - 1: seen on every rank
//   N - 1 turns   on ranks r > s early queries with the early chunk of rank s, on the others late queries with the late
//                 chunk of rank s + 1
//
// What comes of a chunk's pairs is put together by the logarithms of the softmaxes' normalisers (ring attention: Liu et
// al., "Ring Attention with Blockwise Transformers", 2023). It costs many copies. Legend: B batch, t a chunk's time, C
// width, H heads, D = C / H. Tests: tests/ops/context_attention_test.cpp.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

/// Whether the node is of one of the two ops, without dropout and documents.
bool has_parts(const Node& node);

/// Its outputs.
ValueIds context_attention_in_parts(GraphBuilder& g, const Node& node, std::span<const ValueId> in);

}  // namespace tokamak
