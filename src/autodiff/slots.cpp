#include "autodiff/slots.h"

#include "graph/builder.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <fmt/core.h>

#include <bit>

namespace tokamak {
namespace {

constexpr int kRun = -1;  // the level of what a run gives

// Gradients in the order of the parameters, and behind them the loss.
std::vector<ValueId> terms_of(const Gradients& gradients, ValueId loss) {
  std::vector<ValueId> terms = gradients.grads;
  terms.push_back(loss);
  return terms;
}

// Where the sums of a level are kept.
std::vector<ValueId> states_of(GraphBuilder& g, const std::vector<ValueId>& parameters, int level) {
  std::string suffix = level == kRun ? "" : std::to_string(level);
  std::vector<ValueId> states;
  for (ValueId parameter : parameters) states.push_back(g.state_of(parameter, "grad" + suffix, Role::kGradientSum));
  states.push_back(g.state("loss" + suffix, {DType::kF32, {}}, Role::kGradientSum));
  return states;
}

// Of the last 2^levels runs: what the run gave, and the sums of the levels below.
std::vector<ValueId> tree_sums(GraphBuilder& g, const std::vector<ValueId>& parameters, int levels) {
  std::vector<ValueId> sums = states_of(g, parameters, kRun);
  for (int level = 0; level < levels; ++level) {
    std::vector<ValueId> before = states_of(g, parameters, level);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = add(g, before[i], sums[i]);
  }
  return sums;
}

std::vector<ValueId> sums_over_ranks(GraphBuilder& g, std::vector<ValueId> terms, const Slots& slots) {
  if (slots.ranks.size > 1)
    for (ValueId& term : terms) term = ordered_all_reduce(g, term, slots.ranks);
  return terms;
}

std::vector<ValueId> take_parameters(Graph& graph, const Graph& model) {
  std::vector<ValueId> parameters;
  for (const Argument& a : model.arguments())
    if (a.kind == Argument::Kind::kParameter)
      parameters.push_back(graph.add_argument(a.kind, a.name, model.type(a.value), a.layout));
  return parameters;
}

// `sums` are those over all slots.
void append_update_of(GraphBuilder& g, const std::vector<ValueId>& parameters, std::vector<ValueId> sums,
                      const OptimizerConfig& config, const Slots& slots, const std::optional<LossScaling>& scaling) {
  PhaseScope update(g, Phase::kUpdate);
  g.graph().add_result("loss", mul(g, sums.back(), constant(g, 1.0 / double(slots.count))));
  sums.pop_back();
  append_update(g, {parameters, sums}, config, slots.count, scaling, {}, slots.norm_pieces());
}

}  // namespace

void append_slot_update(GraphBuilder& g, const Gradients& gradients, ValueId loss, const OptimizerConfig& config,
                        const Slots& slots, const std::optional<LossScaling>& scaling) {
  PhaseScope backward(g, Phase::kBackward);
  std::vector<ValueId> sums = sums_over_ranks(g, terms_of(gradients, loss), slots);
  append_update_of(g, gradients.parameters, std::move(sums), config, slots, scaling);
}

void append_slot(GraphBuilder& g, const Gradients& gradients, ValueId loss, const Slots& slots) {
  PhaseScope backward(g, Phase::kBackward);
  std::vector<ValueId> terms = terms_of(gradients, loss);
  if (slots.sums_over_ranks_first) terms = sums_over_ranks(g, std::move(terms), slots);
  std::vector<ValueId> states = states_of(g, gradients.parameters, kRun);
  for (size_t i = 0; i < states.size(); ++i) g.graph().add_update(states[i], terms[i]);
}

Graph partial_sum_graph(const Graph& model, int level) {
  Graph graph(fmt::format("sum{}", level));
  GraphBuilder g(graph);
  PhaseScope update(g, Phase::kUpdate);
  std::vector<ValueId> parameters = take_parameters(graph, model), sums = tree_sums(g, parameters, level);
  std::vector<ValueId> states = states_of(g, parameters, level);
  for (size_t i = 0; i < states.size(); ++i) graph.add_update(states[i], sums[i]);
  return graph;
}

Graph slot_update_graph(const Graph& model, const OptimizerConfig& config, const Slots& slots,
                        const std::optional<LossScaling>& scaling) {
  Graph graph("update");
  GraphBuilder g(graph);
  PhaseScope update(g, Phase::kUpdate);
  std::vector<ValueId> parameters = take_parameters(graph, model);
  std::vector<ValueId> sums = tree_sums(g, parameters, std::countr_zero(uint64_t(slots.runs())));
  if (!slots.sums_over_ranks_first) sums = sums_over_ranks(g, std::move(sums), slots);
  append_update_of(g, parameters, std::move(sums), config, slots, scaling);
  return graph;
}

}  // namespace tokamak
