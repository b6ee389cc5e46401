#include "compile/shadow_step.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "base/error.h"
#include "compile/step_compiler.h"
#include "model/model.h"
#include "ops/generate.h"
#include "ops/parameter_kind.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/count_saturated.h"
#include "passes/float8_choice.h"

#include <map>

namespace tokamak {
namespace {

// Of whole micro-batches, whose sums need no order.
ResolvedRun without_slots(const ResolvedRun& run, Precision precision) {
  ResolvedRun shadow = run;
  shadow.slots = {};
  shadow.compile.precision = precision;
  return shadow;
}

struct Differentiated {
  Graph graph;
  Gradients gradients;
};

Differentiated differentiate_loss(std::string name, const ResolvedRun& run, const PassContext& context) {
  const RunConfig& asked = run.asked;
  Differentiated out{forward_graph(std::move(name), asked.model, run.program_sequences(), run.phase.sequence,
                                   asked.data.mask_documents),
                     {}};
  run_passes(out.graph, PassStage::kForward, context);
  for (const Argument& argument : out.graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) out.gradients.parameters.push_back(argument.value);
  GraphBuilder g(out.graph);
  out.gradients.grads = differentiate(g, out.graph.find_result("loss"), out.gradients.parameters);
  return out;
}

ValueId shadow_gradient(GraphBuilder& g, ValueId parameter) {
  const Argument& of = *g.graph().argument_of(parameter);
  return g.state_of(parameter, "shadow", Role::kReducedGradient, {DType::kBF16, g.type(parameter).shape},
                    of.spec.global);
}

void keep_gradients(GraphBuilder& g, const Gradients& gradients) {
  PhaseScope update(g, Phase::kUpdate);
  for (size_t i = 0; i < gradients.grads.size(); ++i)
    g.graph().add_update(shadow_gradient(g, gradients.parameters[i]), cast(g, gradients.grads[i], DType::kBF16));
  g.graph().add_result(std::string(kSaturated), constant(g, 0));
}

struct Sums {
  ValueId squares = kNoValue, bf16_squares = kNoValue, difference_squares = kNoValue;
};

// By squares of the difference: products would be rounded to bf16 (autocast), a difference is small.
void compare_gradients(GraphBuilder& g, const Gradients& gradients) {
  PhaseScope update(g, Phase::kUpdate);
  std::map<std::string, Sums> kinds;
  auto add_to = [&](ValueId& sum, ValueId term) { sum = sum == kNoValue ? term : add(g, sum, term); };
  for (size_t i = 0; i < gradients.grads.size(); ++i) {
    ValueId parameter = gradients.parameters[i], wide = gradients.grads[i];
    ValueId narrow = cast(g, shadow_gradient(g, parameter), DType::kF32);
    Sums& sums = kinds[kind_of(g.graph().argument_of(parameter)->name)];
    add_to(sums.squares, sum_squares(g, {narrow}));
    add_to(sums.bf16_squares, sum_squares(g, {wide}));
    add_to(sums.difference_squares, sum_squares(g, {sub(g, narrow, wide)}));
  }
  for (const auto& [kind, sums] : kinds) {
    g.graph().add_result("squares." + kind, sums.squares);
    g.graph().add_result("bf16_squares." + kind, sums.bf16_squares);
    g.graph().add_result("difference_squares." + kind, sums.difference_squares);
  }
}

void add_float8_kinds(const Graph& graph, std::set<std::string>& kinds) {
  for (const Node& node : graph.nodes())
    if (node.inputs.size() > 1 && has_float8_operand(graph, node)) kinds.merge(kinds_behind(graph, node.inputs[1]));
}

}  // namespace

ShadowStep compile_shadow(const ResolvedRun& run, const Platform& platform) {
  TOKAMAK_CHECK(run.stages() == 1, "a shadow of a pipeline of {} stages", run.stages());
  ShadowStep shadow;
  shadow.step.resolved = run;
  PassObserver observer = [&](const Pass& pass, const Graph& after) {
    if (pass.name == "float8_products") add_float8_kinds(after, shadow.float8);
  };
  for (Precision precision : {run.compile.precision, Precision::kBf16}) {
    ResolvedRun one = without_slots(run, precision);
    PassContext context = context_of(one, platform);
    context.slots = run.slots.count;  // parameters are cut as the run has them
    bool is_first = shadow.step.programs.empty();
    Differentiated made = differentiate_loss(is_first ? "shadow" : "shadow_bf16", one, context);
    GraphBuilder g(made.graph);
    if (is_first)
      keep_gradients(g, made.gradients);
    else
      compare_gradients(g, made.gradients);
    shadow.step.runs.push_back({shadow.step.programs.size(), 0});
    shadow.step.programs.push_back(compile_program(std::move(made.graph), context, PassStage::kStep, observer));
  }
  for (const ParameterInfo& parameter : model_parameters(run.asked.model)) shadow.kinds.insert(kind_of(parameter.name));
  return shadow;
}

}  // namespace tokamak
