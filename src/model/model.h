// A family of models is one record of functions, chosen by model.family: everything after it (training, evaluation,
// generation, checkpoints, the ladder) asks the record. docs/add_a_model.md shows how to add one. Legend: B batch, T
// time, V vocabulary. Tests: tests/model.
#pragma once

#include "config/own_options.h"
#include "graph/graph.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class GraphBuilder;
struct HuggingFaceForm;
struct ModelConfig;

struct ParameterInfo {
  std::string name;  // in the graphs and in checkpoints
  Shape shape;
  double init_std = 0;  // normal(0, init_std); 0: constant init_value
  double init_value = 0;
  Role role = Role::kVector;
  int64_t blocks = 1;       // matrices side by side in it (graph/argument_spec.h)
  bool transposed = false;  // (out, in)
  int64_t unit = 1;         // columns of what is apart that stay together (graph/argument_spec.h)
};

/// What keeps the documents that are packed into a sample apart (data/document_starts.h). Positions go on counting over
/// them: only what attention and the loss see of the others is masked.
struct PackedDocuments {
  ValueId starts = kNoValue;       // i32 (B, T): for each position the first of its document
  ValueId loss_weight = kNoValue;  // f32[]: 1 / how many targets count; those that do not are negative
};

/// What a batch gives a model.
struct LossInputs {
  ValueId tokens = kNoValue;        // i32 (B, T)
  ValueId targets = kNoValue;       // i32 (B, T)
  ValueId rng = kNoValue;           // i32[2]; only with dropout
  PackedDocuments documents;        // only with data.mask_documents
  ValueId window_share = kNoValue;  // f32[]: what windows are of their length; only with model.warms_windows()
  bool show_blocks = false;         // what each block gives becomes a result, block_result(-1) and so on
  bool show_scores = false;         // what it says of each token becomes results: kTokenLosses, kTokenChoices
};

/// The next t tokens of each row of a batch, and where they stand.
struct DecodeInputs {
  ValueId tokens = kNoValue;     // i32 (B, t)
  ValueId positions = kNoValue;  // i32 (B, t)
  ValueId start = kNoValue;      // i32 (B): how many tokens of the row came before
  DType cache = DType::kF32;     // in which what is remembered of them is kept
};

/// Of a training step, per token: 6 for each parameter that the token is multiplied with, and attention's.
struct FlopsPerToken {
  int64_t multiplied_parameters = 0;
  double full = 0;    // attention as if every position saw all others
  double causal = 0;  // only the pairs that the causal mask lets through
};

struct ModelFamily {
  std::string_view name;  // what model.family says
  /// All parameters, in the order in which the graphs take them.
  std::vector<ParameterInfo> (*parameters)(const ModelConfig&);
  /// Appends parameters and forward pass -> f32[]: the mean loss, or with documents the sum of the losses times their
  /// weight.
  ValueId (*loss)(GraphBuilder&, const ModelConfig&, const LossInputs&);
  /// Appends parameters and one step of generation -> logits (B*t, V). What it remembers of earlier tokens are states
  /// of Role::kCache, which it updates; of tokens from model.context on it remembers nothing.
  ValueId (*decode)(GraphBuilder&, const ModelConfig&, const DecodeInputs&);
  FlopsPerToken (*flops_per_token)(const ModelConfig&);
  /// The keys of model.* that it reads and some other family does not.
  OwnOptions options = {};
  const HuggingFaceForm* hugging_face = nullptr;  // null: Transformers has no such family
};

std::span<const ModelFamily* const> model_families();

/// The family that model.family names; UserError with the known ones when there is none.
const ModelFamily& family_of(const ModelConfig& model);

/// The keys of model.* that other families read and the model's does not: "model.window".
std::vector<std::string> unread_options(const ModelConfig& model);

/// Those of the model's family. Needs model.vocab > 0.
std::vector<ParameterInfo> model_parameters(const ModelConfig& model);
int64_t count_parameters(const ModelConfig& model);
FlopsPerToken flops_per_token(const ModelConfig& model);

/// Name of the result that the residual stream at the end of a block is, for who cuts a model there; of block -1: what
/// goes into the first one.
std::string block_result(int64_t block);

/// The graph that training differentiates: inputs tokens and targets (B, T), rng with dropout, window_share where
/// windows warm up, and with mask_documents "documents" and "loss_weight"; result "loss", and with show_blocks those of
/// the blocks.
Graph forward_graph(std::string name, const ModelConfig& model, int64_t B, int64_t T, bool mask_documents,
                    bool show_blocks = false);
/// The same without dropout and with whole windows, to evaluate.
Graph eval_graph(const ModelConfig& model, int64_t B, int64_t T, bool mask_documents = false, bool show_blocks = false);
/// What it says of each token of (B, T), as results f32 (B*T): the loss of the target, 0 where that is negative, and
/// the token that it finds likeliest. Inputs tokens and targets (B, T).
Graph score_graph(const ModelConfig& model, int64_t B, int64_t T);
inline constexpr const char *kTokenLosses = "losses", *kTokenChoices = "choices";
/// To generate: takes the next t tokens of each row into the caches. Inputs tokens (B, t), positions (B, t), start (B).
Graph prefill_graph(const ModelConfig& model, int64_t B, int64_t t, DType cache);
/// A token more of each row, chosen by sample_token (ops/sample_token.h): inputs seeds (B, 2), settings (3); states
/// token, position and drawn (B), which say what the next run begins with; results "token" (B) and "logits", of which
/// the first V of each row count.
Graph decode_graph(const ModelConfig& model, int64_t B, DType cache);
inline constexpr const char* kLogits = "logits";
inline constexpr const char *kNextToken = "next.token", *kNextPosition = "next.position", *kTokensDrawn = "next.drawn";

/// Appends the inputs "documents" and "loss_weight".
PackedDocuments add_document_inputs(GraphBuilder& g, int64_t B, int64_t T);

/// Appends the parameters, in f32.
void add_parameters(GraphBuilder& g, const std::vector<ParameterInfo>& parameters);

/// Values of one parameter in fp32, a function of (seed, position in the list of parameters, element) alone.
void init_parameter(const ParameterInfo& info, int64_t index, int64_t seed, std::span<float> values);
std::vector<float> init_parameter(const ParameterInfo& info, int64_t index, int64_t seed);

}  // namespace tokamak
