#include "autodiff/slots.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <fmt/core.h>

#include <bit>
#include <map>

namespace tokamak {
namespace {

constexpr int kRun = -1;  // the level of what a run with an even number gives; that of one with an odd number is 0

// Gradients in the order of the parameters, and behind them the loss.
ValueIds list_terms(const Gradients& gradients, ValueId loss) {
  ValueIds terms = gradients.grads;
  if (loss != kNoValue) terms.push_back(loss);
  return terms;
}

// Where the sums of a level are kept.
ValueIds states_of(GraphBuilder& g, const ValueIds& parameters, bool has_loss, int level) {
  std::string suffix = level == kRun ? "" : std::to_string(level);
  ValueIds states;
  std::set<ValueId> known;
  for (ValueId parameter : parameters) {
    std::string_view prefix = known.insert(parameter).second ? kGradientSum : kPeerGradient;
    states.push_back(g.state_of(parameter, std::string(prefix) + suffix, Role::kGradientSum));
  }
  if (has_loss) states.push_back(g.state("loss" + suffix, {DType::kF32, {}}, Role::kGradientSum));
  return states;
}

// Of the last 2^levels runs: what the run gave, and the sums of the levels below.
ValueIds tree_sums(GraphBuilder& g, const ValueIds& parameters, bool has_loss, int levels) {
  ValueIds sums = states_of(g, parameters, has_loss, kRun);
  for (int level = 0; level < levels; ++level) {
    ValueIds before = states_of(g, parameters, has_loss, level);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = add(g, before[i], sums[i]);
  }
  return sums;
}

ValueIds sums_over_ranks(GraphBuilder& g, ValueIds terms, const Slots& slots) {
  if (slots.ranks.size > 1)
    for (ValueId& term : terms) term = ordered_all_reduce(g, term, slots.ranks);
  return terms;
}

// Behind all of them those that are used twice.
ValueIds take_parameters(Graph& graph, const SlotTerms& terms) {
  ValueIds parameters;
  for (const Argument& a : terms.model.arguments())
    if (a.kind == Argument::Kind::kParameter)
      parameters.push_back(graph.add_argument(a.kind, a.name, terms.model.type(a.value), a.spec));
  for (const std::string& name : terms.twice) parameters.push_back(graph.find_argument(name));
  return parameters;
}

// Keeps the sum of the last 2^levels runs as that of a level.
Graph sum_graph(const SlotTerms& terms, std::string name, int levels, int kept_as) {
  Graph graph(terms.of.empty() ? name : name + "." + terms.of);
  GraphBuilder g(graph);
  PhaseScope update(g, Phase::kUpdate);
  ValueIds parameters = take_parameters(graph, terms);
  ValueIds sums = tree_sums(g, parameters, terms.has_loss, levels);
  ValueIds states = states_of(g, parameters, terms.has_loss, kept_as);
  for (size_t i = 0; i < states.size(); ++i) graph.add_update(states[i], sums[i]);
  return graph;
}

// Of each parameter the sum over its uses.
Gradients add_uses(GraphBuilder& g, const ValueIds& parameters, const ValueIds& sums) {
  Gradients gradients;
  std::map<ValueId, size_t> known;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto [at, is_new] = known.try_emplace(parameters[i], gradients.parameters.size());
    if (is_new) {
      gradients.parameters.push_back(parameters[i]);
      gradients.grads.push_back(sums[i]);
    } else {
      ValueId& sum = gradients.grads[at->second];
      sum = add(g, sum, sums[i]);
    }
  }
  return gradients;
}

// `sums` are those over all slots, and behind those of the parameters that of the loss, where it is here.
void append_update_of(GraphBuilder& g, const ValueIds& parameters, const ValueIds& sums, const Optimizer& optimizer,
                      const Slots& slots, const std::optional<LossScaling>& scaling, const OtherStages& others) {
  PhaseScope update(g, Phase::kUpdate);
  ValueId loss = sums.size() > parameters.size() ? sums.back() : constant(g, 0);
  if (others.axis.size > 1) loss = all_reduce(g, loss, others.axis, Reduction::kSum);
  g.graph().add_result("loss", mul(g, loss, constant(g, 1.0 / double(slots.count))));
  append_update(g, add_uses(g, parameters, sums), optimizer, slots.count, scaling, others, slots.norm_pieces());
}

}  // namespace

int Slots::levels() const { return std::countr_zero(uint64_t(runs())); }

SlotTerms terms_of(const Graph& graph, const Gradients& gradients) {
  SlotTerms terms;
  for (ValueId parameter : gradients.parameters) {
    const Argument& a = *graph.argument_of(parameter);
    if (terms.model.find_argument(a.name) != kNoValue)
      terms.twice.insert(a.name);
    else
      terms.model.add_argument(a.kind, a.name, graph.type(parameter), a.spec);
  }
  return terms;
}

void append_slot_update(GraphBuilder& g, const Gradients& gradients, ValueId loss, const Optimizer& optimizer,
                        const Slots& slots, const std::optional<LossScaling>& scaling) {
  PhaseScope backward(g, Phase::kBackward);
  ValueIds sums = sums_over_ranks(g, list_terms(gradients, loss), slots);
  append_update_of(g, gradients.parameters, sums, optimizer, slots, scaling, {});
}

void append_slot(GraphBuilder& g, const Gradients& gradients, ValueId loss, const Slots& slots) {
  PhaseScope backward(g, Phase::kBackward);
  ValueIds terms = list_terms(gradients, loss);
  if (slots.sums_over_ranks_first) terms = sums_over_ranks(g, std::move(terms), slots);
  ValueIds states = states_of(g, gradients.parameters, loss != kNoValue, kRun);
  for (size_t i = 0; i < states.size(); ++i) g.graph().add_update(states[i], terms[i]);
}

std::map<std::string, std::string> states_of_odd_runs(const SlotTerms& terms) {
  Graph graph("states");
  GraphBuilder g(graph);
  ValueIds parameters = take_parameters(graph, terms);
  ValueIds even = states_of(g, parameters, terms.has_loss, kRun);
  ValueIds odd = states_of(g, parameters, terms.has_loss, 0);
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < even.size(); ++i) names[graph.argument_of(even[i])->name] = graph.argument_of(odd[i])->name;
  return names;
}

Graph partial_sum_graph(const SlotTerms& terms, int level) {
  TOKAMAK_CHECK(level > 0, "a sum of one run");
  return sum_graph(terms, fmt::format("sum{}", level), level, level);
}

Graph total_graph(const SlotTerms& terms, const Slots& slots) {
  return sum_graph(terms, "total", slots.levels(), kRun);
}

Graph slot_update_graph(const SlotTerms& terms, const Optimizer& optimizer, const Slots& slots,
                        const std::optional<LossScaling>& scaling, const OtherStages& others) {
  Graph graph("update");
  GraphBuilder g(graph);
  PhaseScope update(g, Phase::kUpdate);
  ValueIds parameters = take_parameters(graph, terms);
  int levels = others.axis.size > 1 ? 0 : slots.levels();
  ValueIds sums = tree_sums(g, parameters, terms.has_loss, levels);
  if (!slots.sums_over_ranks_first) sums = sums_over_ranks(g, std::move(sums), slots);
  append_update_of(g, parameters, sums, optimizer, slots, scaling, others);
  return graph;
}

}  // namespace tokamak
