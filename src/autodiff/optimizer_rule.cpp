#include "autodiff/optimizer_rule.h"

#include "base/error.h"
#include "config/optimizer_config.h"
#include "config/suggest.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <fmt/ranges.h>

namespace tokamak {

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

ValueId unless_skipped(GraphBuilder& g, const ParameterUpdate& update, ValueId before, ValueId after) {
  return select(g, equal(g, update.scale, constant(g, 0)), before, after);
}

}  // namespace tokamak
