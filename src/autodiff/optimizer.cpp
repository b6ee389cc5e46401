#include "autodiff/optimizer.h"

#include "base/error.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <limits>
#include <map>

namespace tokamak {
namespace {

// Gradients of the whole step: tensors, and what all of them are to be multiplied by.
struct Reduced {
  ValueIds grads;
  ValueId scale;
};

// The sum over micro-batches is in the gradients already; this is where a sum over devices goes.
Reduced reduce(GraphBuilder& g, const ValueIds& grads, int64_t micro_batches, bool scaled) {
  ValueId scale = constant(g, 1.0 / double(micro_batches));
  return {grads, scaled ? div(g, scale, loss_scale(g)) : scale};
}

// Of all gradients of the model.
ValueId sum_of_squares(GraphBuilder& g, const Gradients& gradients, const ValueIds& grads, const OtherStages& others,
                       const NormPieces& pieces) {
  std::map<std::string, ValueId> counted;
  ValueIds values;
  for (size_t i = 0; i < grads.size(); ++i) {
    const std::string& name = g.graph().argument_of(gradients.parameters[i])->name;
    if (others.uncounted.count(name)) continue;
    counted[name] = grads[i];
    values.push_back(grads[i]);
  }
  if (pieces.most > 0) {
    const Graph& model = others.model ? *others.model : g.graph();
    return sum_squares_in_order(g, model, counted, pieces, others.axis);
  }
  ValueId squares = values.empty() ? constant(g, 0) : sum_squares(g, values);
  return others.axis.size == 1 ? squares : all_reduce(g, squares, others.axis, Reduction::kSum);
}

// False for NaN as well.
ValueId is_finite(GraphBuilder& g, ValueId value) {
  return less(g, value, constant(g, std::numeric_limits<double>::infinity()));
}

// Times min(1, clip / (norm + 1e-6)), as PyTorch's clip_grad_norm_; 0: no clipping.
ValueId clipped(GraphBuilder& g, ValueId scale, ValueId norm, double clip) {
  if (clip == 0) return scale;
  ValueId ratio = div(g, constant(g, clip), add(g, norm, constant(g, 1e-6)));
  return mul(g, minimum(g, constant(g, 1), ratio), scale);
}

ValueId loss_sum(GraphBuilder& g) { return g.state("loss", {DType::kF32, {}}, Role::kGradientSum); }

ValueId add_state(GraphBuilder& g, ValueId parameter, const OptimizerState& state, const OptimizerConfig& config) {
  const ValueType stored = g.type(parameter);
  const ArgumentSpec spec = g.graph().argument_of(parameter)->spec;
  if (!state.type) {
    ValueType type{parse_dtype(config.state_type), stored.shape};
    return g.state_of(parameter, state.prefix, Role::kMoment, std::move(type), spec.global);
  }
  Shape of_global = state.type({stored.dtype, spec.global}, spec).shape;
  return g.state_of(parameter, state.prefix, Role::kMoment, state.type(stored, spec), of_global);
}

// The learning rate of a step, and each share of it that a parameter has.
class Rates {
 public:
  explicit Rates(ValueId lr) : lr_(lr) {}
  ValueId share(GraphBuilder& g, double ratio) {
    auto [known, is_new] = shares_.try_emplace(ratio, lr_);
    if (is_new && ratio != 1) known->second = mul(g, lr_, constant(g, ratio));
    return known->second;
  }

 private:
  ValueId lr_;
  std::map<double, ValueId> shares_;
};

// With the states that the parameter's rule keeps of it, and its rates.
ParameterUpdate with_states(GraphBuilder& g, ParameterUpdate update, const Optimizer& optimizer, Rates& lr) {
  const Argument parameter = *g.graph().argument_of(update.parameter);
  const ParameterRates rates = optimizer.rates_of(parameter);
  update.weight_decay = rates.weight_decay;
  update.lr = lr.share(g, rates.lr);
  for (const OptimizerState& state : optimizer.rule_of(parameter).states)
    update.states.push_back(add_state(g, update.parameter, state, optimizer.config()));
  return update;
}

// ema = decay ema + (1 - decay) parameter; the first one is the parameter itself.
void append_average(GraphBuilder& g, const ParameterUpdate& update, ValueId parameter, double decay) {
  ValueId old = g.state_of(update.parameter, kWeightAverage, Role::kMoment), one = constant(g, 1);
  ValueId share = select(g, equal(g, update.step, one), constant(g, 0), constant(g, decay));
  ValueId mean = add(g, mul(g, old, share), mul(g, parameter, sub(g, one, share)));
  g.graph().add_update(old, unless_skipped(g, update, old, mean));
}

void finish(GraphBuilder& g, const ParameterUpdate& update, const OptimizerRule& rule, const ValueIds& updated,
            const OptimizerConfig& config) {
  TOKAMAK_CHECK(updated.size() == 1 + rule.states.size(), "'{}' updates {} tensors, not {}", rule.name, updated.size(),
                1 + rule.states.size());
  g.graph().add_update(update.parameter, updated[0]);
  for (size_t i = 0; i < update.states.size(); ++i) g.graph().add_update(update.states[i], updated[i + 1]);
  if (config.ema > 0) append_average(g, update, updated[0], config.ema);
}

// Each parameter by its rule; those that a rule updates together come last.
void apply_rules(GraphBuilder& g, const std::vector<ParameterUpdate>& updates, const Optimizer& optimizer) {
  std::map<const OptimizerRule*, std::vector<ParameterUpdate>> together;
  for (const ParameterUpdate& update : updates) {
    const OptimizerRule& rule = optimizer.rule_of(*g.graph().argument_of(update.parameter));
    if (rule.update_all)
      together[&rule].push_back(update);
    else
      finish(g, update, rule, rule.update(g, update, optimizer.config()), optimizer.config());
  }
  for (const auto& [rule, of_rule] : together) {
    std::vector<ValueIds> updated = rule->update_all(g, of_rule, optimizer.shares(), optimizer.config());
    for (size_t i = 0; i < of_rule.size(); ++i) finish(g, of_rule[i], *rule, updated[i], optimizer.config());
  }
}

// The graph in which each gradient is added to its state grad.<name> as soon as it is there, and those states;
// `gradients` become the sums.
std::pair<Graph, ValueIds> with_sums_behind(const Graph& graph, Gradients& gradients) {
  std::multimap<int, size_t> made;  // by node: the gradients that it gives
  for (size_t i = 0; i < gradients.grads.size(); ++i) made.emplace(graph.producer(gradients.grads[i]), i);
  TOKAMAK_CHECK(made.empty() || made.begin()->first >= 0, "a gradient is of no node");
  Rewriter rewriter(graph);
  ValueIds sums(gradients.grads.size(), kNoValue);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    rewriter.copy(graph.nodes()[n]);
    auto [begin, end] = made.equal_range(int(n));
    for (auto at = begin; at != end; ++at) {
      GraphBuilder& g = rewriter.in_phase(Phase::kBackward);
      ValueId& parameter = gradients.parameters[at->second];
      ValueId& gradient = gradients.grads[at->second];
      parameter = rewriter.map(parameter);
      sums[at->second] = g.state_of(parameter, kGradientSum, Role::kGradientSum);
      gradient = add(g, sums[at->second], rewriter.map(gradient));
    }
  }
  return {rewriter.finish(), std::move(sums)};
}

ValueId reduced_gradient(GraphBuilder& g, ValueId parameter) {
  return g.state_of(parameter, "reduced", Role::kReducedGradient);
}

}  // namespace

void append_update(GraphBuilder& g, const Gradients& gradients, const Optimizer& optimizer, int64_t micro_batches,
                   const std::optional<LossScaling>& scaling, const OtherStages& others, const NormPieces& pieces) {
  PhaseScope update(g, Phase::kUpdate);
  ValueId lr = g.input("lr", {DType::kF32, {}}), steps = g.state("step", {DType::kF32, {}});
  Reduced reduced = reduce(g, gradients.grads, micro_batches, scaling.has_value());
  ValueId squares = sum_of_squares(g, gradients, reduced.grads, others, pieces), good = is_finite(g, squares);
  ValueId step = select(g, good, add(g, steps, constant(g, 1)), steps);
  g.graph().add_update(steps, step);
  ValueId norm = mul(g, sqrt(g, squares), reduced.scale);
  g.graph().add_result("grad_norm", norm);
  ValueId scale = select(g, good, clipped(g, reduced.scale, norm, optimizer.config().clip), constant(g, 0));
  if (scaling) append_next_scale(g, good, *scaling);
  Rates rates(lr);
  std::vector<ParameterUpdate> updates;
  for (size_t i = 0; i < gradients.parameters.size(); ++i)
    updates.push_back(
        with_states(g, {.parameter = gradients.parameters[i], .grad = reduced.grads[i], .scale = scale, .step = step},
                    optimizer, rates));
  apply_rules(g, updates, optimizer);
}

void append_accumulation(GraphBuilder& g, const Gradients& gradients) {
  PhaseScope update(g, Phase::kUpdate);
  for (size_t i = 0; i < gradients.parameters.size(); ++i) {
    ValueId sum = g.state_of(gradients.parameters[i], kGradientSum, Role::kGradientSum);
    g.graph().add_update(sum, add(g, sum, gradients.grads[i]));
  }
}

Graph with_sums_added(const Graph& graph, Gradients& gradients) {
  auto [to, sums] = with_sums_behind(graph, gradients);
  GraphBuilder g(to);
  PhaseScope update(g, Phase::kUpdate);
  for (ValueId sum : sums) to.add_update(sum, constant(g, 0, g.shape(sum)));
  return std::move(to);
}

Graph with_sums_reduced(const Graph& graph, const Gradients& gradients) {
  Gradients of_step = gradients;
  auto [to, sums] = with_sums_behind(graph, of_step);
  GraphBuilder g(to);
  for (size_t i = 0; i < sums.size(); ++i) {
    to.add_update(sums[i], of_step.grads[i]);
    to.add_update(reduced_gradient(g, of_step.parameters[i]), of_step.grads[i]);
  }
  return std::move(to);
}

Graph sync_gradients_graph(const Graph& model) {
  Graph graph("sync_gradients");
  GraphBuilder g(graph);
  g.set_phase(Phase::kUpdate);
  for (const Argument& a : model.arguments()) {
    if (a.kind != Argument::Kind::kParameter) continue;
    ValueId parameter = graph.add_argument(a.kind, a.name, model.type(a.value), a.spec);
    ValueId sum = g.state_of(parameter, kGradientSum, Role::kGradientSum);
    graph.add_update(reduced_gradient(g, parameter), sum);
  }
  return graph;
}

void append_loss_sum(GraphBuilder& g, ValueId loss) {
  PhaseScope update(g, Phase::kUpdate);
  ValueId sum = loss_sum(g);
  g.graph().add_update(sum, add(g, sum, loss));
}

Graph accumulated_update_graph(const Graph& model, const Optimizer& optimizer, int64_t micro_batches,
                               const std::optional<LossScaling>& scaling, const OtherStages& others) {
  Graph graph("update");
  GraphBuilder g(graph);
  g.set_phase(Phase::kUpdate);
  Gradients gradients;
  ValueIds sums;
  for (const Argument& a : model.arguments()) {
    if (a.kind != Argument::Kind::kParameter) continue;
    ValueId parameter = graph.add_argument(a.kind, a.name, model.type(a.value), a.spec);
    sums.push_back(g.state_of(parameter, kGradientSum, Role::kGradientSum));
    gradients.parameters.push_back(parameter);
    gradients.grads.push_back(others.reduced.count(a.name) ? reduced_gradient(g, parameter) : sums.back());
    if (others.shared.count(a.name))
      gradients.grads.back() = add(g, sums.back(), g.state_of(parameter, kPeerGradient, Role::kGradientSum));
  }
  append_update(g, gradients, optimizer, micro_batches, scaling, others);
  if (others.axis.size > 1) {
    ValueId sum = others.has_loss ? loss_sum(g) : constant(g, 0);
    if (others.has_loss) sums.push_back(sum);
    ValueId of_all = all_reduce(g, sum, others.axis, Reduction::kSum);
    graph.add_result("loss", mul(g, of_all, constant(g, 1.0 / double(micro_batches))));
  }
  for (ValueId sum : sums) graph.add_update(sum, constant(g, 0, g.shape(sum)));
  return graph;
}

std::string peer_gradient_state(const std::string& parameter) { return fmt::format("{}.{}", kPeerGradient, parameter); }
std::string gradient_sum_state(const std::string& parameter) { return fmt::format("{}.{}", kGradientSum, parameter); }

std::set<std::string> reduced_parameters(const Graph& graph) {
  std::set<std::string> names;
  for (const Argument& argument : graph.arguments())
    if (argument.spec.role == Role::kReducedGradient) names.insert(argument.spec.of);
  return names;
}

}  // namespace tokamak
