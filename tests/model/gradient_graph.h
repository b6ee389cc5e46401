// Graphs of a model's loss and gradients under every setting of the passes.
#pragma once

#include "autodiff/differentiate.h"
#include "config/model_config.h"
#include "model/model.h"
#include "passes/pass.h"

#include <string>
#include <vector>

namespace tokamak::test {

struct Setting {
  std::string name;
  CompileConfig compile;
  int64_t micro_batches = 1;
};

inline CompileConfig without(std::vector<std::string> passes, Precision precision = Precision::kFp32) {
  CompileConfig c;
  c.disable_passes = std::move(passes);
  c.precision = precision;
  return c;
}

inline CompileConfig all_off(Precision precision = Precision::kFp32) {
  return without({"fuse", "flash_attention", "pad_vocab", "fused_optimizer"}, precision);
}

inline std::vector<Setting> settings() {
  return {
      {"AllOn", without({})},
      {"AllOff", all_off()},
      {"NoPassAtAll", without({"fuse", "flash_attention", "pad_vocab", "fused_optimizer", "eliminate_dead_code",
                               "eliminate_common_subexpressions", "form_groups", "decompose_attention"})},
      {"FuseOnly", without({"flash_attention", "pad_vocab", "fused_optimizer"})},
      {"FlashOnly", without({"fuse", "pad_vocab", "fused_optimizer"})},
      {"PadOnly", without({"fuse", "flash_attention", "fused_optimizer"})},
      {"FusedOptimizerOnly", without({"fuse", "flash_attention", "pad_vocab"})},
      {"NoFlash", without({"flash_attention"})},
      {"Accumulated", without({}), 2},
      {"AccumulatedAllOff", all_off(), 2},
  };
}

/// Results loss and grad.<name>; null: without passes. With documents the inputs of add_document_inputs as well.
inline Graph gradient_graph(const ModelConfig& model, int64_t B, const CompileConfig* compile, bool documents = false) {
  Graph graph("gradients");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {B, model.context}});
  ValueId targets = g.input("targets", {DType::kI32, {B, model.context}});
  PackedDocuments packed = documents ? add_document_inputs(g, B, model.context) : PackedDocuments{};
  graph.add_result("loss", family_of(model).loss(g, model, {tokens, targets, kNoValue, packed}));
  if (compile) run_passes(graph, PassStage::kForward, {{}, *compile});
  GraphBuilder backward(graph);
  ValueIds parameters;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) parameters.push_back(argument.value);
  ValueIds grads = differentiate(backward, graph.find_result("loss"), parameters);
  for (size_t i = 0; i < grads.size(); ++i)
    graph.add_result("grad." + graph.argument_of(parameters[i])->name, grads[i]);
  if (compile) run_passes(graph, PassStage::kStep, {{}, *compile});
  return graph;
}

}  // namespace tokamak::test
