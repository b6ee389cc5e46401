// The pieces that speedruns of small models agree on, each an option, on top of Llama's block: squared ReLU, RMSNorm
// without weights, norms of queries and keys, a soft cap of the logits, zero as the beginning of what adds to the
// residual stream, windows in some layers, values that tokens have by themselves, and blocks that take what stands
// before others. docs/modern.md has them and where they come from. With a gate and weights in its norms it is Llama,
// whose names of parameters it has. Legend: as in model/llama.h.
#pragma once

#include "model/model.h"

namespace tokamak {

extern const ModelFamily modern;

// What the record is made of (model/model.h has the contracts).
std::vector<ParameterInfo> modern_parameters(const ModelConfig& model);
ValueId modern_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in);
/// States cache.<layer> (B, context, 2 H D).
ValueId modern_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in);
FlopsPerToken modern_flops_per_token(const ModelConfig& model);

/// Whether this block's input has a sum with the output of block layers - 1 - layer.
bool has_skip(const ModelConfig& model, int64_t layer);

/// tokens (B, T) -> logits (B*T, V), capped: what generation chooses from. `documents`, `show_blocks`: as in
/// LossInputs.
ValueId modern_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng,
                      ValueId documents = kNoValue, bool show_blocks = false);

}  // namespace tokamak
