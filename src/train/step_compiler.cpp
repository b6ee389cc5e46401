#include "train/step_compiler.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "base/error.h"
#include "graph/rewriter.h"
#include "model/model.h"
#include "passes/step_mesh.h"

#include <algorithm>

namespace tokamak {
namespace {

// A gain below this is within the noise of the measured rates.
constexpr double kWorthwhileGain = 1.1;

Gradients append_gradients(GraphBuilder& g, bool scaled) {
  Gradients gradients;
  for (const Argument& argument : g.graph().arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  ValueId loss = g.graph().find_result("loss");
  gradients.grads = differentiate(g, scaled ? scaled_loss(g, loss) : loss, gradients.parameters);
  for (size_t i = 0; i < gradients.grads.size(); ++i)
    TOKAMAK_CHECK(gradients.grads[i] != kNoValue, "the loss does not depend on '{}'",
                  g.graph().argument_of(gradients.parameters[i])->name);
  return gradients;
}

CompiledGraph compile_graph(Graph graph, const PassContext& context, const PassObserver& observer) {
  return compile_program(std::move(graph), context, Stage::kStep, observer);
}

// The graph with the parameters that it does not read as they are in `other`.
Graph with_unread_types(const Graph& graph, const Graph& other) {
  std::vector<std::vector<int>> users = find_users(graph);
  std::map<ValueId, ValueType> types;
  for (const Argument& argument : graph.arguments())
    if (is_parameter(argument.layout.role) && users[size_t(argument.value)].empty())
      types[argument.value] = other.type(other.find_argument(argument.name));
  Rewriter rewriter(graph, types);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

}  // namespace

std::optional<LossScaling> loss_scaling(const RunConfig& config) {
  if (config.compile.precision != Precision::kFp16) return {};
  return LossScaling{.growth_interval = double(config.compile.loss_scale_growth_interval)};
}

PassContext context_of(const RunConfig& config, const Platform& platform) {
  PassContext context{platform, resolve(config, platform.target).compile};
  context.mesh = step_mesh(config.mesh);
  context.zero = config.mesh.zero;
  context.sequence = config.mesh.sequence;
  context.bucket_mib = config.mesh.bucket_mib;
  return context;
}

CompiledGraph compile_program(Graph graph, const PassContext& context, Stage stage, const PassObserver& observer) {
  CompiledGraph compiled;
  compiled.before = graph;
  compiled.reports = run_passes(graph, stage, context, observer);
  compiled.plan = make_plan(std::move(graph), context, int(context.options.streams));
  return compiled;
}

int64_t count_micro_batches(const RunConfig& config) {
  int64_t micro = config.train.batch * config.model.context, total = config.train.total_batch;
  if (total == 0) return 1;
  if (total % micro != 0)
    user_error(
        "[train] expected train.total_batch to be a multiple of train.batch x model.context = {} tokens, got {}; "
        "the nearest below is {}",
        micro, total, std::max(micro, total / micro * micro));
  return total / micro;
}

RunConfig resolve(RunConfig config, const Target& target) {
  Precision& precision = config.compile.precision;
  if (precision == Precision::kAuto) {
    bool has_gain = target.tf32_flops > kWorthwhileGain * target.f32_flops;
    double f32 = has_gain ? target.tf32_flops : target.f32_flops;
    precision = target.bf16_flops > kWorthwhileGain * f32 ? Precision::kBf16
                : has_gain                                ? Precision::kTf32
                                                          : Precision::kFp32;
  }
  if (precision == Precision::kTf32 && target.tf32_flops <= 0) precision = Precision::kFp32;
  config.compile.streams = std::min<int64_t>(config.compile.streams, target.streams);
  return config;
}

void require_one_rank(const RunConfig& config) {
  int64_t ranks = step_mesh(config.mesh).num_ranks();
  if (ranks == 1) return;
  user_error(
      "[mesh] expected a mesh of one rank, got one of {}; a step for several can be planned (tokamak explain), but not "
      "run yet",
      ranks);
}

void require_no_pipeline(const RunConfig& config) {
  if (config.mesh.pipe > 1)
    user_error("[mesh.pipe] expected 1, got {}; a pipeline can be planned (tokamak explain), but not run yet",
               config.mesh.pipe);
}

CompiledStep compile_step(const RunConfig& asked, const Platform& platform, const PassObserver& observer) {
  require_no_pipeline(asked);
  CompiledStep out;
  out.config = resolve(asked, platform.target);
  const RunConfig& config = out.config;
  int64_t micro_batches = count_micro_batches(config);
  PassContext context = context_of(config, platform);

  Graph graph = forward_graph(micro_batches == 1 ? "step" : "micro_batch", config.model, config.train.batch,
                              config.model.context, config.data.mask_documents);
  out.forward = graph;
  out.forward_reports = run_passes(graph, Stage::kForward, context, observer);

  GraphBuilder g(graph);
  std::optional<LossScaling> scaling = loss_scaling(config);
  Gradients gradients = append_gradients(g, scaling.has_value());
  for (int64_t i = 0; i < micro_batches; ++i) out.schedule.push_back({0, i});
  if (micro_batches == 1) {
    append_update(g, gradients, config.optimizer, 1, scaling);
    out.programs.push_back(compile_graph(std::move(graph), context, observer));
    return out;
  }
  append_accumulation(g, gradients);
  Graph update = accumulated_update_graph(graph, config.optimizer, micro_batches, scaling);
  out.programs.push_back(compile_graph(std::move(graph), context, observer));
  out.schedule.push_back({out.programs.size()});
  out.programs.push_back(compile_graph(std::move(update), context, observer));
  return out;
}

CompiledGraph compile_inference(Graph graph, const RunConfig& config, const Platform& platform) {
  PassContext context = context_of(config, platform);
  run_passes(graph, Stage::kForward, context);
  return compile_graph(std::move(graph), context, {});
}

CompiledGraph compile_generation(Graph graph, const RunConfig& config, const Platform& platform, const Graph* other) {
  PassContext context{platform, resolve(config, platform.target).compile, true};
  run_passes(graph, Stage::kForward, context);
  run_passes(graph, Stage::kStep, context);
  if (other) graph = with_unread_types(graph, *other);
  CompiledGraph compiled;
  compiled.plan = make_plan(std::move(graph), context);
  return compiled;
}

}  // namespace tokamak
