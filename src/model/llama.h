// Llama and its relatives written with ops: RMSNorm, rotary positions, heads of queries that share keys and values, an
// MLP with a gate (SwiGLU), tied or separate head; as options the biases of Qwen2's queries, keys and values, Qwen3's
// norms of queries and keys, and Mistral's window. Touvron et al., "Llama 2" (2023). Parameter names and layouts are
// those of Transformers' LlamaForCausalLM: matrices (out, in). Legend: B batch, T time, C width, H heads, K heads of
// keys and values, D width of a head, V vocabulary.
#pragma once

#include "model/hugging_face.h"
#include "model/model.h"

namespace tokamak {

extern const ModelFamily llama;
extern const HuggingFaceForm llama_hugging_face;

// What the record is made of (model/model.h has the contracts).
std::vector<ParameterInfo> llama_parameters(const ModelConfig& model);
ValueId llama_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in);
/// States cache.<layer> (B, context, 2 H D).
ValueId llama_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in);
/// As gpt_flops_per_token; attention's scores and values take 12 L H D for each pair of positions that see each other.
FlopsPerToken llama_flops_per_token(const ModelConfig& model);

/// What the loss is made of: tokens (B, T) -> logits (B*T, V). `documents`, `show_blocks`: as in LossInputs.
ValueId llama_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng,
                     ValueId documents = kNoValue, bool show_blocks = false);

}  // namespace tokamak
