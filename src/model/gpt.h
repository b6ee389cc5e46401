// GPT-2 written with ops: learned positions, pre-LayerNorm blocks, GELU (tanh), causal attention, tied or separate
// head. Radford et al., "Language models are unsupervised multitask learners" (2019). Parameter names, layouts and the
// initialisation are those of Hugging Face's GPT-2. Legend: B batch, T time, C width, V vocabulary, L layers.
#pragma once

#include "model/hugging_face.h"
#include "model/model.h"

namespace tokamak {

extern const ModelFamily gpt2;
extern const HuggingFaceForm gpt2_hugging_face;

inline constexpr double kLayerNormEps = 1e-5;

// What the record is made of (model/model.h has the contracts).
std::vector<ParameterInfo> gpt_parameters(const ModelConfig& model);
ValueId gpt_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in);
/// States cache.<layer> (B, context, 2C).
ValueId gpt_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in);
/// N multiplied parameters: all without the position embeddings, and without the token embedding where the last layer
/// has a matrix of its own (then it is only looked up). Attention's scores and values take 12 L C T, causal 6 L C T.
FlopsPerToken gpt_flops_per_token(const ModelConfig& model);

/// What the loss is made of: tokens (B, T) -> logits (B*T, V). `documents`, `show_blocks`: as in
/// LossInputs.
ValueId gpt_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng, ValueId documents = kNoValue,
                   bool show_blocks = false);

}  // namespace tokamak
