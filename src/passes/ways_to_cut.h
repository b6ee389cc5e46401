// Along one axis of the mesh, the ways in which the ranks may share the work of a node, as its op's sharding rule
// (graph/sharding_rule.h) allows.
#pragma once

#include "graph/sharding_rule.h"
#include "passes/placement.h"

namespace tokamak {

/// Cut along a factor; or, where `linear` is not empty, on terms of the sums that these inputs are; or, without either,
/// all of it on every rank.
struct Way {
  FactorCut cut;
  InputSet linear;
  bool operator==(const Way&) const = default;
};

/// Where an input must lie for that, and where an output then does.
Placement input_of(const ShardingRule& rule, const Way& way, size_t input);
Placement output_of(const ShardingRule& rule, const Way& way, size_t output);

/// The factor in which the placement cuts the operand, if there is one that may be cut, into `size` parts.
FactorCut cut_of(const ShardingRule& rule, const OperandFactors& operand, const Placement& placement, int64_t size);

/// Whether the factor may be cut so beside what is chosen for the axes before this one.
bool can_cut_too(const ShardingRule& rule, const FactorCut& cut, size_t axis, const std::vector<Way>& before,
                 const Mesh& mesh);

}  // namespace tokamak
