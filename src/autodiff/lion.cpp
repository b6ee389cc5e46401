// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023), with decoupled weight decay:
//   u = sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g; param = param - lr (u + decay param)
#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

namespace tokamak {
namespace {

constexpr OptimizerState kStates[] = {{"lion.m"}};

ValueId sign(GraphBuilder& g, ValueId a) { return sub(g, less(g, constant(g, 0), a), less(g, a, constant(g, 0))); }

ValueIds update(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  ValueId old = u.parameter, m = u.states[0], grad = mul(g, u.grad, u.scale);
  ValueId step = mul(g, sign(g, mix(g, grad, m, c.beta1)), u.lr);
  ValueId parameter = sub(g, decayed(g, u, step, c), step);
  return {unless_skipped(g, u, old, parameter), unless_skipped(g, u, m, mix(g, grad, m, c.beta2))};
}

}  // namespace

constexpr std::string_view kOptions[] = {"beta1", "beta2", "cautious_decay"};

constinit const OptimizerRule lion_rule = {.name = "lion", .states = kStates, .update = update, .options = kOptions};

}  // namespace tokamak
