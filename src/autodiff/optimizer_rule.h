// A rule makes new parameters out of old ones and their gradients: one record, chosen by optimizer.name.
// docs/add_an_optimizer.md shows how to add one. Tests: tests/autodiff/optimizer_rule_test.cpp.
#pragma once

#include "graph/graph.h"

#include <span>
#include <string_view>
#include <vector>

namespace tokamak {

class GraphBuilder;
struct OptimizerConfig;

/// One parameter's part of an update. Parameter and states are f32, of one shape; lr, scale and step f32[].
struct ParameterUpdate {
  ValueId parameter = kNoValue;
  ValueId grad = kNoValue;      // of the same shape and any float type; to be multiplied by `scale`
  std::vector<ValueId> states;  // as the rule lists them
  double weight_decay = 0;      // 0 for what does not decay
  ValueId lr = kNoValue;
  ValueId scale = kNoValue;  // 0: the update is not applied, as `grad` may be infinite or NaN
  ValueId step = kNoValue;   // the number of this update, from 1
};

struct OptimizerRule {
  std::string_view name;  // what optimizer.name says
  /// What it keeps of each parameter, zero at first: "adam.m" is a state adam.m.<parameter>, which is also the name in
  /// checkpoints.
  std::span<const std::string_view> states;
  /// Appends the update -> the new parameter and the new states. A step that is skipped leaves all as they were, bit
  /// for bit: see unless_skipped.
  std::vector<ValueId> (*update)(GraphBuilder&, const ParameterUpdate&, const OptimizerConfig&);
};

std::span<const OptimizerRule* const> optimizer_rules();

/// The rule that optimizer.name names; UserError with the known ones when there is none.
const OptimizerRule& rule_of(const OptimizerConfig& config);

/// `after`, or in a step that is skipped `before`.
ValueId unless_skipped(GraphBuilder& g, const ParameterUpdate& update, ValueId before, ValueId after);

extern const OptimizerRule adamw_rule;  // autodiff/adamw.cpp
extern const OptimizerRule sgd_rule;    // autodiff/sgd.cpp

}  // namespace tokamak
