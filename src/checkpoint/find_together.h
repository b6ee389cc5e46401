// The checkpoint that several ranks go on from. Tests: tests/checkpoint/find_together_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"

namespace tokamak {

/// What find_checkpoint() gives, the same on all ranks, which call it at the same time while nothing is written there.
/// Those that share a memory, and so see the same files, also share the work: each compares the checksums of some
/// tensors, and what one of them finds damaged all skip. `ranks` null: one rank.
std::optional<FoundCheckpoint> find_together(const std::filesystem::path& out, std::vector<std::string>* warnings,
                                             const MeshRanks* ranks);

}  // namespace tokamak
