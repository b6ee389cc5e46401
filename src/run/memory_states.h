// States of a run that are kept in the memory of its machine, beside its processes: when one of these is lost, the
// run goes on from the last that is whole, not from the last save on a disk. Tests: tests/e2e/memory_states_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "exec/mesh_ranks.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// Where they are: a folder in a file system of memory, which outlives the processes that train.
struct MemoryStates {
  std::filesystem::path folder;  // of this machine; empty: none are kept
  int64_t every = 0;             // steps between them

  bool are_kept() const { return !folder.empty() && every > 0; }
};

/// The newest kept state, if all ranks see it, it is undamaged and is newer than the newest checkpoint in `out`. All
/// ranks call it at the same time, with the same.
std::optional<FoundCheckpoint> find_kept_state(const MemoryStates& memory, const std::filesystem::path& out,
                                               std::vector<std::string>* warnings, const MeshRanks* ranks);

/// Forgets all; of the rank that leads.
void forget_kept_states(const MemoryStates& memory);

/// Beside a kept state: how long steps took whose outcome is in it, and in no save. 0: not known.
void note_step_seconds(const std::filesystem::path& state, double seconds);
double noted_step_seconds(const std::filesystem::path& state);

}  // namespace tokamak
