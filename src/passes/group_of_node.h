// From a node to a group: finds the template that the node, or a composite's decomposition, fits. `outer` are values of
// the graph. Tests: tests/passes/form_groups_test.cpp
#pragma once

#include "ops/group_body.h"

#include <optional>

namespace tokamak {

/// What the node computes when that fits a template. `wanted[i]`: output i is read by somebody.
std::optional<GroupBody> group_of_node(const Graph& graph, const Node& node, const std::vector<bool>& wanted);

/// What a flat, row or column group of the graph computes.
GroupBody group_around(const Node& group);
/// The same of what was read of its body already (read_group).
GroupBody group_around(const Node& group, const GroupBody& read);

}  // namespace tokamak
