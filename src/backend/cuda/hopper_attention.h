// Attention by Hopper's tensor cores (kernels/attention_hopper.cu, kernels/attention_grad_hopper.cu): bf16 and f16,
// heads of 64 or 128, times that are multiples of 128, dropout up to 0.96; documents only with causal attention.
// Deterministic, and faster than cuDNN's; T x T is never stored. Tests: tests/backend/cuda/hopper_attention_test.cpp.
#pragma once

#include "backend/cuda/attention_problem.h"
#include "backend/cuda/kernels.h"

#include <string>

namespace tokamak::cuda {

/// Whether the kernels can do the problem on a device of this compute capability.
bool hopper_supports(const AttentionProblem& problem, Architecture architecture);

/// Whether there is also enough to keep the device's multiprocessors busy, each with some tiles of a head.
bool hopper_fills(const AttentionProblem& problem, int multiprocessors);

/// Scratch memory of the gradient on a device with so many multiprocessors.
int64_t hopper_grad_scratch_bytes(const AttentionProblem& problem, int multiprocessors);

/// Device code of the functions attention; attention_rows and attention_rows_and_sums; attention_grad;
/// attention_column_sums.
std::string hopper_attention_source(const AttentionProblem& problem);
std::string hopper_attention_rows_source(const AttentionProblem& problem);
std::string hopper_attention_grad_source(const AttentionProblem& problem);
std::string hopper_attention_column_sums_source(const AttentionProblem& problem);

/// inputs: qkv[, rng][, documents], outputs: out (B, T, C), lse (B, H, T); of several ranks as attention_problem.h
/// says, and chunks that are multiples of 256 (128 of heads of 128). hopper_supports() must hold, here and below.
KernelPtr make_hopper_attention(Context& context, const AttentionProblem& problem);
/// inputs: qkv, out, lse, dout[, rng][, documents], outputs: dqkv (B, T, 3C)[, its sums over B and T (3C)]. Where it
/// gives these, those of dK are 0, and those of dV are without dropout the sums of dout
/// (kernels/attention_column_sums.cu says why).
KernelPtr make_hopper_attention_grad(Context& context, const AttentionProblem& problem);

}  // namespace tokamak::cuda
