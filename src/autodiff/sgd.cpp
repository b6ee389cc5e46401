// sgd: gradient descent with momentum (Sutskever et al., "On the importance of initialization and momentum in deep
// learning", 2013), in PyTorch's form:
//   g = grad * scale + decay * param; m = momentum m + g; param = param - lr m
#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

namespace tokamak {
namespace {

constexpr OptimizerState kStates[] = {{"sgd.m"}};

ValueIds update(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  ValueId old = u.parameter, grad = mul(g, u.grad, u.scale);
  if (u.weight_decay != 0) grad = add(g, grad, mul(g, old, constant(g, u.weight_decay)));
  ValueId m = add(g, mul(g, u.states[0], constant(g, c.momentum)), grad);
  ValueId parameter = sub(g, old, mul(g, m, u.lr));
  return {unless_skipped(g, u, old, parameter), unless_skipped(g, u, u.states[0], m)};
}

}  // namespace

constexpr std::string_view kOptions[] = {"momentum"};

constinit const OptimizerRule sgd_rule = {.name = "sgd", .states = kStates, .update = update, .options = kOptions};

}  // namespace tokamak
