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
      &adamw_rule,
      &sgd_rule,
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

Optimizer::Optimizer(const OptimizerConfig& config) : Optimizer(tokamak::rule_of(config), config) {}

const OptimizerRule& Optimizer::rule_of(const Argument& parameter) const { return rule_in_group(*rule_, parameter); }

std::function<bool(const Argument&)> Optimizer::updates_whole() const {
  return [rule = rule_](const Argument& parameter) { return rule_in_group(*rule, parameter).whole; };
}

ValueId unless_skipped(GraphBuilder& g, const ParameterUpdate& update, ValueId before, ValueId after) {
  ValueId chosen = select(g, equal(g, update.scale, constant(g, 0)), before, after);
  return cast(g, chosen, g.type(before).dtype);  // the comparison is f32, and a state may not be
}

}  // namespace tokamak
