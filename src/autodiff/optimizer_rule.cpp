#include "autodiff/optimizer_rule.h"

#include "base/error.h"
#include "config/optimizer_config.h"
#include "config/suggest.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <fmt/ranges.h>

namespace tokamak {
namespace {

const OptimizerRule& rule_in_group(const OptimizerRule& rule, const Argument& parameter) {
  const OptimizerRule* other = rule.other_rule ? rule.other_rule(parameter) : nullptr;
  return other ? *other : rule;
}

}  // namespace

std::span<const OptimizerRule* const> optimizer_rules() {
  static constexpr const OptimizerRule* kRules[] = {
      &adamw_rule, &adamw8bit_rule, &adafactor_rule, &sgd_rule, &lion_rule, &muon_rule, &normuon_rule,
  };
  return kRules;
}

const OptimizerRule& rule_of(const OptimizerConfig& config) {
  std::vector<std::string> known;
  for (const OptimizerRule* rule : optimizer_rules()) {
    if (rule->name == config.name) return *rule;
    known.emplace_back(rule->name);
  }
  user_error("[optimizer.name] expected a known optimizer ({}), got '{}'{}", fmt::join(known, ", "), config.name,
             did_you_mean(config.name, known));
}

std::vector<std::string> unread_options(const OptimizerConfig& config) {
  std::vector<OwnOptions> all;
  for (const OptimizerRule* rule : optimizer_rules()) all.push_back(rule->options);
  return unread_options("optimizer", rule_of(config).options, all);
}

Optimizer::Optimizer(const OptimizerConfig& config) : Optimizer(tokamak::rule_of(config), config) {}

Optimizer::Optimizer(const OptimizerRule& rule, const OptimizerConfig& config)
    : rule_(&rule), config_(&config), groups_(rate_groups(config)) {}

const OptimizerRule& Optimizer::rule_of(const Argument& parameter) const { return rule_in_group(*rule_, parameter); }

ParameterRates Optimizer::rates_of(const Argument& parameter) const {
  bool is_others = &rule_of(parameter) != rule_ && !rule_->same_rate;
  const double own = is_others ? config_->adamw_lr_ratio : 1;
  ParameterRates rates{.lr = own, .weight_decay = is_matrix(parameter.spec.role) ? config_->weight_decay : 0};
  for (const RateGroup& group : groups_) {
    if (!matches_name(group.pattern, parameter.name)) continue;
    if (group.lr) rates.lr = own * *group.lr;
    if (group.weight_decay) rates.weight_decay = *group.weight_decay;
  }
  return rates;
}

std::function<bool(const Argument&)> Optimizer::updates_whole() const {
  return [rule = rule_](const Argument& parameter) { return rule_in_group(*rule, parameter).whole; };
}

// Of a matrix's states the shapes.
std::vector<Shape> Optimizer::kept_of(const Shape& matrix) const {
  const ValueType type{DType::kF32, matrix};
  const Argument argument{Argument::Kind::kParameter, "", kNoValue, {Role::kMatrix, "", matrix}};
  std::vector<Shape> shapes;
  for (const OptimizerState& state : rule_of(argument).states)
    shapes.push_back(state.type ? state.type(type, argument.spec).shape : matrix);
  return shapes;
}

bool Optimizer::keeps_rows() const {
  const Shape matrix{256, 256};
  return std::ranges::all_of(kept_of(matrix), [&](const Shape& kept) { return kept.size() >= matrix.size(); });
}

bool Optimizer::keeps_shapes() const {
  const Shape matrix{256, 256};
  return std::ranges::all_of(kept_of(matrix), [&](const Shape& kept) { return kept == matrix; });
}

ValueId unless_skipped(GraphBuilder& g, const ParameterUpdate& update, ValueId before, ValueId after) {
  if (g.type(before).dtype == DType::kBF16 && g.type(after).dtype == DType::kF32)
    after = stochastic_bf16(g, after, update.step);
  ValueId chosen = select(g, equal(g, update.scale, constant(g, 0)), before, after);
  return cast(g, chosen, g.type(before).dtype);  // the comparison is f32, and a state may not be
}

ValueId mix(GraphBuilder& g, ValueId grad, ValueId old, double share) {
  return add(g, mul(g, old, constant(g, share)), mul(g, grad, constant(g, 1 - share)));
}

// Liu et al., "Cautious weight decay" (2025).
ValueId decayed(GraphBuilder& g, const ParameterUpdate& u, ValueId step, const OptimizerConfig& config) {
  if (u.weight_decay == 0) return u.parameter;
  ValueId rate = mul(g, u.lr, constant(g, u.weight_decay));
  if (config.cautious_decay)
    rate = mul(g, rate, sub(g, constant(g, 1), less(g, mul(g, step, u.parameter), constant(g, 0))));
  return mul(g, u.parameter, sub(g, constant(g, 1), rate));
}

}  // namespace tokamak
