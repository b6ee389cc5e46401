// AdamW: all of it is the op, which also says where the rule comes from (ops/adamw.cpp).
#include "ops/adamw.h"
#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"

namespace tokamak {
namespace {

constexpr OptimizerState kStates[] = {{"adam.m"}, {"adam.v"}};

ValueIds update(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  return g.add(op::adamw, {u.parameter, u.grad, u.states[0], u.states[1], u.lr, u.scale, u.step},
               {{"beta1", c.beta1}, {"beta2", c.beta2}, {"decay", u.weight_decay}, {"eps", c.eps}});
}

}  // namespace

constexpr std::string_view kOptions[] = {"beta1", "beta2", "eps"};

constinit const OptimizerRule adamw_rule = {.name = "adamw", .states = kStates, .update = update, .options = kOptions};

}  // namespace tokamak
