// Attention by cuDNN, for f16 and bf16 without dropout: forward and backward read and write the packed projection as it
// lies. One of cudnn/frontend.cpp and cudnn/absent.cpp is built (cmake/TokamakCudnn.cmake); with the second nothing is
// supported. Tests: tests/backend/cuda/attention_test.cpp.
#pragma once

#include "backend/cuda/attention_problem.h"
#include "backend/cuda/kernels.h"

#include <string>

namespace tokamak::cuda {

enum class AttentionPass : uint8_t { kForward, kBackward };

/// Whether the program was built with cuDNN and finds its library.
bool has_cudnn();

/// "cuDNN 9.19.0"; without it, that and why.
std::string cudnn_version();

/// Whether cuDNN has a plan for the problem on this device; that plan is then kept in the context. cuDNN itself is
/// asked, as what it supports differs by version, device, head_dim and time. Throws CudaError when cuDNN cannot be used
/// at all or fails in making a plan that it says it supports.
bool cudnn_supports(Context& context, const AttentionProblem& problem, AttentionPass pass);

/// Whether it may have one, as far as that is known without a device.
bool cudnn_may_support(const AttentionProblem& problem);

/// Sequences that the gradient works on at a time. On Hopper the deterministic one keeps dP (T x T per head) in scratch
/// memory, where the other one adds dQ in whatever order blocks come by; it is bounded by running the batch in parts,
/// which still fill the GPU.
int64_t cudnn_grad_batch(const AttentionProblem& problem);
/// Scratch memory that the gradient took on an H200 (cuDNN 9.14).
int64_t cudnn_grad_scratch_bytes(const AttentionProblem& problem);

/// inputs: qkv, outputs: out (B, T, C), lse (B, H, T). cudnn_supports() must hold, here and below.
KernelPtr make_cudnn_attention(Context& context, const AttentionProblem& problem);
/// inputs: qkv, out, lse, dout, outputs: dqkv (B, T, 3C). Two runs give the same bits, unless the problem allows
/// any order.
KernelPtr make_cudnn_attention_grad(Context& context, const AttentionProblem& problem);

}  // namespace tokamak::cuda
