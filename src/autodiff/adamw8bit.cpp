// AdamW with moments of 8 bits: all of it is the op, which also says where the rule comes from (ops/adamw8bit.cpp).
// A tensor has them or has not, whatever a rank has of it, so that a checkpoint opens under any mesh: small ones,
// vectors and those whose rows have no blocks of some length are AdamW's.
#include "ops/adamw8bit.h"

#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"

namespace tokamak {
namespace {

constexpr int64_t kLeastElements = 4096;  // as in bitsandbytes
constexpr int64_t kLeastBlock = 32;       // shorter ones would save little

// The first one's blocks of rows are divided over ranks as those of its scales.
ValueType codes(const ValueType& parameter, const ArgumentSpec&) { return moment_codes(parameter.shape); }
ValueType scales(const ValueType& parameter, const ArgumentSpec&) { return moment_scales(parameter.shape); }

constexpr OptimizerState kStates[] = {
    {"adam8.m", codes}, {"adam8.m_scale", scales}, {"adam8.v", codes}, {"adam8.v_scale", scales}};

const OptimizerRule* adamw_but_for_large(const Argument& parameter) {
  const ArgumentSpec& spec = parameter.spec;
  bool is_large = is_matrix(spec.role) && spec.global.size() == 2 && num_elements(spec.global) >= kLeastElements;
  return is_large && block_length(spec.global[1]) >= kLeastBlock ? nullptr : &adamw_rule;
}

ValueIds update(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  ValueIds inputs{u.parameter, u.grad};
  inputs.insert(inputs.end(), u.states.begin(), u.states.end());
  inputs.insert(inputs.end(), {u.lr, u.scale, u.step});
  return g.add(op::adamw8bit, std::move(inputs),
               {{"beta1", c.beta1}, {"beta2", c.beta2}, {"decay", u.weight_decay}, {"eps", c.eps}});
}

}  // namespace

constexpr std::string_view kOptions[] = {"beta1", "beta2", "eps"};

constinit const OptimizerRule adamw8bit_rule = {.name = "adamw8bit",
                                                .states = kStates,
                                                .update = update,
                                                .other_rule = adamw_but_for_large,
                                                .same_rate = true,
                                                .options = kOptions};

}  // namespace tokamak
