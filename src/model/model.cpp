#include "model/model.h"

#include "config/model_config.h"
#include "graph/builder.h"

namespace tokamak {
namespace {

ModelConfig without_dropout(ModelConfig model) {
  model.dropout = 0;
  return model;
}

}  // namespace

PackedDocuments add_document_inputs(GraphBuilder& g, int64_t B, int64_t T) {
  ValueId starts = g.input("documents", {DType::kI32, {B, T}});
  return {starts, g.input("loss_weight", {DType::kF32, {}})};
}

void add_parameters(GraphBuilder& g, const std::vector<ParameterInfo>& parameters) {
  for (const ParameterInfo& info : parameters) g.parameter(info.name, {DType::kF32, info.shape}, info.role);
}

std::vector<ParameterInfo> model_parameters(const ModelConfig& model) { return family_of(model).parameters(model); }

int64_t count_parameters(const ModelConfig& model) {
  int64_t count = 0;
  for (const ParameterInfo& info : model_parameters(model)) count += num_elements(info.shape);
  return count;
}

FlopsPerToken flops_per_token(const ModelConfig& model) { return family_of(model).flops_per_token(model); }

Graph forward_graph(std::string name, const ModelConfig& model, int64_t B, int64_t T, bool mask_documents) {
  Graph graph(std::move(name));
  GraphBuilder g(graph);
  LossInputs in;
  in.tokens = g.input("tokens", {DType::kI32, {B, T}});
  in.targets = g.input("targets", {DType::kI32, {B, T}});
  if (model.dropout > 0) in.rng = g.input("rng", {DType::kI32, {2}});
  if (mask_documents) in.documents = add_document_inputs(g, B, T);
  graph.add_result("loss", family_of(model).loss(g, model, in));
  return graph;
}

Graph eval_graph(const ModelConfig& model, int64_t B, int64_t T, bool mask_documents) {
  return forward_graph("eval", without_dropout(model), B, T, mask_documents);
}

Graph decode_graph(const ModelConfig& model, int64_t B, int64_t t) {
  Graph graph("decode");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {B, t}});
  ValueId positions = g.input("positions", {DType::kI32, {t}}), position = g.input("position", {DType::kI32, {}});
  ModelConfig config = without_dropout(model);
  graph.add_result("logits", family_of(model).decode(g, config, tokens, positions, position));
  return graph;
}

}  // namespace tokamak
