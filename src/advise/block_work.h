// The kernels of a block of the model on one rank, in closed form. Tests: tests/advise/estimate_test.cpp.
#pragma once

#include "advise/forward_timeline.h"
#include "advise/layout.h"
#include "graph/target.h"

#include <vector>

namespace tokamak {

/// Seconds of kernels by kind.
struct Work {
  double matmul = 0, attention = 0, memory_bound = 0;

  double seconds() const { return matmul + attention + memory_bound; }
  Work& operator+=(const Work& other);
};
Work operator*(double times, const Work& work);

/// Seconds of the kernels of a block's backward pass. `norm` is of one of the two.
struct BackwardParts {
  double down_weight = 0, down_input = 0, up_weight = 0, up_input = 0;  // of the MLP's matrices
  double projection_weight = 0, projection_input = 0, qkv_weight = 0, qkv_input = 0;
  double attention = 0, norm = 0;

  double weights() const { return down_weight + up_weight + projection_weight + qkv_weight; }
  double matmul() const { return weights() + down_input + up_input + projection_input + qkv_input; }
};

/// A value of a block that is kept for the backward pass, and what making it again takes.
struct KeptValue {
  double bytes = 0;
  Work again;
  bool stays = false;           // what collectives give is not computed again
  bool is_for_weights = false;  // an operand of a weight's gradient
};

/// One micro-batch on one rank of a layout.
class BlockWork {
 public:
  BlockWork(const ModelConfig& model, const ParallelLayout& layout, const Target& target);

  double tokens() const { return tokens_; }  // of a rank
  Work forward() const;
  ForwardParts forward_parts() const;
  Work backward() const;
  BackwardParts backward_parts() const;
  /// But for the block's input, which always stays; first what frees most bytes in the time that it takes again.
  std::vector<KeptValue> kept() const;
  double input_bytes() const;
  double gradient_bytes() const;  // operands of weights' gradients that the backward pass makes

  Work classifier() const;      // forward, loss and backward
  double logits_bytes() const;  // that are there at a time
  Work embedding() const;       // forward and backward
  double stream_bytes() const;  // of the residual stream in bf16, whole: what tensor ranks gather
  double padded_vocab() const;
  /// Whether attention over context is one kernel.
  bool has_context_kernel(double compute_capability) const;
  /// Of a block over context, forward and backward: what attention copies.
  double context_seconds(double compute_capability) const;

  /// Memory of its own that the gradient of attention has.
  double scratch_bytes(double compute_capability) const;

  double memory_seconds(double bytes) const;

 private:
  double matmul(double m, double n, double k, double functions = 0) const;
  double attention(double products, double bytes) const;
  double dropout(double elements) const;

  double rows(double bytes) const;
  double dropout_of_stream() const;

  const ModelConfig& model_;
  const Target& target_;
  double tokens_, width_, tensor_;
  double divided_;   // tensor ranks that the residual stream is divided over, too
  double stream_;    // bytes of its elements
  int64_t context_;  // ranks
};

}  // namespace tokamak
