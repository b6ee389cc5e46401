// What the update of a step asks of the gradients: where a sum over ranks should lie when it is made.
#pragma once

#include "passes/placement.h"
#include "passes/whole_graph.h"

#include <map>

namespace tokamak {

/// By value; those that are not there have no reason to be cut.
using WantedPlacements = std::map<ValueId, Placements>;

/// For the values that have a reason to be cut: those that an update stores in an argument which is, and in the update
/// phase what such values, and arguments that are cut, are computed with; along axes that keep parameters cut also what
/// such gradients are sums of. The terms of an ordered sum are wanted as the
/// sum is, but for what ZeRO cuts. `cuts` are those of the arguments.
WantedPlacements find_wanted(const WholeGraph& whole, const Mesh& mesh,
                             const std::map<ValueId, std::vector<Cut>>& cuts);

}  // namespace tokamak
