// Who shares storage with whom, and from when to when it is taken: the step of planning before offsets are chosen.
// Tests: tests/plan/plan_test.cpp.
#pragma once

#include "plan/plan.h"

namespace tokamak {

/// Views share their input's storage; updates go into their argument's storage where they can, and dying inputs are
/// taken over by outputs of the same type where the op allows it. Everything else gets a block of its own.
struct StorageMap {
  std::vector<Block> blocks;         // without offsets
  std::vector<int> block_of;         // by value; -1: in an argument's storage
  std::vector<ValueId> argument_of;  // by value; kNoValue: in a block
  std::vector<CopyBack> copies;
};

StorageMap map_storage(const Graph& graph);

/// For every value the one whose bytes it shows: itself, or for a view what its input shows.
std::vector<ValueId> find_roots(const Graph& graph);

/// The same graph, in which no result and no update is the old value of an argument that is updated: such a value is
/// copied by a node at the end.
Graph copy_old_values(Graph graph);

}  // namespace tokamak
