// What is known of cuDNN's attention without a device, or cuDNN.
#include "backend/cuda/cudnn_attention.h"

namespace tokamak::cuda {
namespace {

constexpr int64_t kMaxScoreBytes = int64_t(1) << 30;

}  // namespace

bool cudnn_may_support(const AttentionProblem& p) {
  bool low = p.dtype == DType::kBF16 || p.dtype == DType::kF16;
  return low && p.dropout == 0 && p.head_dim % 8 == 0 && has_cudnn();
}

// The largest part of the batch that divides it and whose scores fit the bound.
int64_t cudnn_grad_batch(const AttentionProblem& p) {
  if (p.any_order) return p.batch;
  int64_t batch = p.batch, sequence_bytes = p.heads * p.time * p.time * 2;
  while (batch > 1 && (p.batch % batch != 0 || batch * sequence_bytes > kMaxScoreBytes)) --batch;
  return batch;
}

int64_t cudnn_grad_scratch_bytes(const AttentionProblem& p) {
  int64_t rows = cudnn_grad_batch(p) * p.heads * p.time;
  return rows * (p.any_order ? p.head_dim * 4 : p.time * 2) + rows * 4;  // dQ in f32 or dP in 16 bits, and a float
}

}  // namespace tokamak::cuda
