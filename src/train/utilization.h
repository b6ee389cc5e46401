// Model FLOPs utilization (MFU): which share of the machine's peak the arithmetic of the model itself takes.
// Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (2022), appendix B. Recomputed values and padding
// do not count as work. Tests: tests/train/utilization_test.cpp.
#pragma once

#include "graph/target.h"

#include <string>
#include <string_view>

namespace tokamak {

struct ModelConfig;

/// Parameters that a token is multiplied with, N: all without the position embeddings, and without the token embedding
/// where the last layer has a matrix of its own (then it is only looked up).
int64_t count_multiplied_parameters(const ModelConfig& model);

/// FLOPs of a training step per token. Attention's scores and values take 12 L C T (L layers, C width, T context) as
/// if every position saw all others, 6 L C T when only those pairs count that the causal mask lets through.
struct FlopsPerToken {
  double full = 0;    // 6 N + 12 L C T
  double causal = 0;  // 6 N + 6 L C T
};
FlopsPerToken flops_per_token(const ModelConfig& model);

struct Peak {
  double flops = 0;  // FLOP/s
  std::string name;  // "989 TFLOP/s (H200 datasheet, bf16 dense)"
};

/// The peak of matmuls at a precision (fp32, tf32, bf16, fp16): the vendor's number for the GPUs of the table, else the
/// matmul rate of the target.
Peak peak_of(const Target& target, std::string_view precision);

}  // namespace tokamak
