// States of a run that are kept in the memory of its machine, beside its processes: when one of these is lost, the
// run goes on from the last that is whole, not from the last save on a disk. Tests: tests/e2e/memory_states_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/rank_machines.h"
#include "exec/mesh_ranks.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// Those of several machines, each of which has its own folder. With a copy of the parts of the machine before it.
struct MemoryOfMachines {
  RankMachines machines;
  std::unique_ptr<Communicator> links;  // of all ranks, in the host's memory
};

/// Where they are: a folder in a file system of memory, which outlives the processes that train.
struct MemoryStates {
  std::filesystem::path folder;  // of this machine; empty: none are kept
  int64_t every = 0;             // steps between them
  /// Makes a communicator of all ranks in the host's memory, whose waits have no end; all call it at the same time.
  std::function<std::unique_ptr<Communicator>()> open_links = {};
  std::shared_ptr<MemoryOfMachines> others = {};  // null: all ranks share the folder

  bool are_kept() const { return !folder.empty() && every > 0; }
  /// The same text on all ranks that share the folder.
  std::string place() const;
};

/// The same with `others`, or where not all ranks keep states none. UserError where they are asked for different ones.
/// All ranks call it at the same time, as they do the next.
MemoryStates agree_on_memory(const MemoryStates& asked, const MeshRanks* ranks);

/// The newest kept state of which no machine that is lost had a part alone, if it is undamaged and newer than the
/// newest checkpoint in `out`. What else is kept is forgotten.
std::optional<FoundCheckpoint> find_kept_state(const MemoryStates& memory, const std::filesystem::path& out,
                                               std::vector<std::string>* warnings, const MeshRanks* ranks);

/// The rank that does for a folder what one has to: of those that share it the first.
bool leads_memory(const MemoryStates& memory, const MeshRanks* ranks);

/// Forgets all; of the ranks that lead there.
void forget_kept_states(const MemoryStates& memory);

/// Beside a kept state: how long steps took whose outcome is in it, and in no save. 0: not known.
void note_step_seconds(const std::filesystem::path& state, double seconds);
double noted_step_seconds(const std::filesystem::path& state);

}  // namespace tokamak
