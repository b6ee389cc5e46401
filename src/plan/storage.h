// Who shares storage with whom, and from when to when it is taken: the step of planning before offsets are chosen.
// Tests: tests/plan/plan_test.cpp.
#pragma once

#include "plan/plan.h"
#include "plan/streams.h"

namespace tokamak {

/// Views share their input's storage; updates go into their argument's storage where they can, and dying inputs are
/// taken over by outputs of the same type where the op allows it. Everything else gets a block of its own.
struct StorageMap {
  std::vector<Block> blocks;         // without offsets
  std::vector<int> block_of;         // by value; -1: in an argument's storage
  std::vector<int64_t> offset;       // by value: where it begins there, in bytes
  std::vector<ValueId> argument_of;  // by value; kNoValue: in a block
  std::vector<CopyBack> copies;
};

StorageMap map_storage(const Graph& graph, const StreamAssignment& assignment);

/// For every value the one whose bytes it shows: itself, or for a view what its input shows.
std::vector<ValueId> find_roots(const Graph& graph);

/// The same graph, with nodes at its end where results and updates would get into each other's way: a copy of an
/// updated argument's old value that is a result or another argument's update, and a second constant where two updates
/// share one.
Graph separate_updates(Graph graph);

}  // namespace tokamak
