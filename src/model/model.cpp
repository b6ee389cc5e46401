#include "model/model.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "ops/movement.h"
#include "ops/sample_token.h"

namespace tokamak {
namespace {

// As it is when it is not trained.
ModelConfig at_rest(ModelConfig model) {
  model.dropout = 0;
  model.window_warmup_steps = 0;
  return model;
}

}  // namespace

PackedDocuments add_document_inputs(GraphBuilder& g, int64_t B, int64_t T) {
  ValueId starts = g.input("documents", {DType::kI32, {B, T}});
  return {starts, g.input("loss_weight", {DType::kF32, {}})};
}

void add_parameters(GraphBuilder& g, const std::vector<ParameterInfo>& parameters) {
  for (const ParameterInfo& info : parameters)
    g.graph().add_argument(Argument::Kind::kParameter, info.name, {DType::kF32, info.shape},
                           {info.role, "", info.shape, info.blocks, {}, info.transposed, info.unit});
}

std::vector<ParameterInfo> model_parameters(const ModelConfig& model) { return family_of(model).parameters(model); }

int64_t count_parameters(const ModelConfig& model) {
  int64_t count = 0;
  for (const ParameterInfo& info : model_parameters(model)) count += num_elements(info.shape);
  return count;
}

FlopsPerToken flops_per_token(const ModelConfig& model) { return family_of(model).flops_per_token(model); }

std::string block_result(int64_t block) { return block < 0 ? "embeddings" : "block." + std::to_string(block); }

Graph forward_graph(std::string name, const ModelConfig& model, int64_t B, int64_t T, bool mask_documents,
                    bool show_blocks) {
  Graph graph(std::move(name));
  GraphBuilder g(graph);
  LossInputs in{.show_blocks = show_blocks};
  in.tokens = g.input("tokens", {DType::kI32, {B, T}});
  in.targets = g.input("targets", {DType::kI32, {B, T}});
  if (model.dropout > 0) in.rng = g.input("rng", {DType::kI32, {2}});
  if (mask_documents) in.documents = add_document_inputs(g, B, T);
  if (model.warms_windows()) in.window_share = g.input("window_share", {DType::kF32, {}});
  graph.add_result("loss", family_of(model).loss(g, model, in));
  return graph;
}

Graph eval_graph(const ModelConfig& model, int64_t B, int64_t T, bool mask_documents, bool show_blocks) {
  return forward_graph("eval", at_rest(model), B, T, mask_documents, show_blocks);
}

Graph score_graph(const ModelConfig& model, int64_t B, int64_t T) {
  Graph graph("score");
  GraphBuilder g(graph);
  LossInputs in{.show_scores = true};
  in.tokens = g.input("tokens", {DType::kI32, {B, T}});
  in.targets = g.input("targets", {DType::kI32, {B, T}});
  family_of(model).loss(g, at_rest(model), in);
  return graph;
}

Graph prefill_graph(const ModelConfig& model, int64_t B, int64_t t, DType cache) {
  Graph graph("prefill");
  GraphBuilder g(graph);
  DecodeInputs in{.cache = cache};
  in.tokens = g.input("tokens", {DType::kI32, {B, t}});
  in.positions = g.input("positions", {DType::kI32, {B, t}});
  in.start = g.input("start", {DType::kI32, {B}});
  family_of(model).decode(g, at_rest(model), in);
  return graph;
}

Graph decode_graph(const ModelConfig& model, int64_t B, DType cache) {
  Graph graph("decode");
  GraphBuilder g(graph);
  auto state = [&](const char* name) { return g.state(name, {DType::kI32, {B}}, Role::kCache); };
  SampledStep now{state(kNextToken), state(kNextPosition), state(kTokensDrawn)};
  DecodeInputs in{.cache = cache};
  in.tokens = reshape(g, now.token, {B, 1});
  in.positions = reshape(g, now.position, {B, 1});
  in.start = now.position;
  ValueId logits = family_of(model).decode(g, at_rest(model), in);
  ValueId seeds = g.input("seeds", {DType::kI32, {B, 2}}), settings = g.input("settings", {DType::kF32, {3}});
  SampledStep next = sample_token(g, logits, now, seeds, settings, model.vocab, model.context);
  graph.add_update(now.token, next.token);
  graph.add_update(now.position, next.position);
  graph.add_update(now.drawn, next.drawn);
  graph.add_result("token", next.token);
  graph.add_result(kLogits, logits);
  return graph;
}

}  // namespace tokamak
