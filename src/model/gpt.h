// GPT-2 written with ops: learned positions, pre-LayerNorm blocks, GELU (tanh), causal attention, tied or separate
// head. Radford et al., "Language models are unsupervised multitask learners" (2019). Parameter names, layouts and the
// initialisation are those of Hugging Face's GPT-2. Legend: B batch, T time, C width, V vocabulary, L layers.
#pragma once

#include "graph/builder.h"

#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct ModelConfig;

struct ParameterInfo {
  std::string name;
  Shape shape;
  double init_std = 0;  // normal(0, init_std); 0: constant init_value
  double init_value = 0;
  bool decay = false;  // weight decay applies: matrices only
};

/// All parameters, in the order in which the model takes them. Needs model.vocab > 0.
std::vector<ParameterInfo> gpt_parameters(const ModelConfig& model);
int64_t count_parameters(const ModelConfig& model);

/// Values of one parameter in fp32, a function of (seed, position in gpt_parameters, element) alone.
void init_parameter(const ParameterInfo& info, int64_t index, int64_t seed, std::span<float> values);
std::vector<float> init_parameter(const ParameterInfo& info, int64_t index, int64_t seed);

/// What keeps the documents that are packed into a sample apart (data/document_starts.h). Positions go on counting over
/// them: only what attention and the loss see of the others is masked.
struct PackedDocuments {
  ValueId starts = kNoValue;       // i32 (B, T): for each position the first of its document
  ValueId loss_weight = kNoValue;  // f32[]: 1 / how many targets count; those that do not are negative
};

/// Appends the inputs "documents" and "loss_weight".
PackedDocuments add_document_inputs(GraphBuilder& g, int64_t B, int64_t T);

/// Appends parameters and forward pass: tokens i32 (B, T), targets i32 (B, T), rng i32[2] (only read with dropout)
/// -> f32[]: the mean loss, or with documents the sum of the losses times their weight.
ValueId gpt_loss(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId targets, ValueId rng,
                 const PackedDocuments& documents = {});

/// tokens (B, T) -> logits (B*T, V). `documents`: as PackedDocuments::starts.
ValueId gpt_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng,
                   ValueId documents = kNoValue);

/// Inference graph for generation: inputs tokens (B, t), positions i32 (t), position i32[]; states cache.<layer>
/// (B, context, 2C), updated; result "logits" (B*t, V).
Graph gpt_decode_graph(const ModelConfig& model, int64_t B, int64_t t);

/// Inference graph of the loss: inputs tokens and targets (B, T), and with mask_documents those of add_document_inputs;
/// result "loss".
Graph gpt_eval_graph(const ModelConfig& model, int64_t B, int64_t T, bool mask_documents = false);

}  // namespace tokamak
