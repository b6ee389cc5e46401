// The checkpoint that several ranks go on from. Tests: tests/checkpoint/find_together_test.cpp.
#pragma once

#include "base/memory_sharers.h"
#include "checkpoint/checkpoint.h"

namespace tokamak {

/// What find_checkpoint() gives, the same on all ranks, which call it at the same time while nothing is written there.
/// Those that share a memory, and so see the same files, also share the work: each compares the checksums of some
/// tensors, and what one of them finds damaged all skip. `ranks` null: one rank. `place`: the same text for ranks that
/// see the same files.
std::optional<FoundCheckpoint> find_together(const std::filesystem::path& out, std::vector<std::string>* warnings,
                                             const MeshRanks* ranks, const std::string& place = memory_place());

}  // namespace tokamak
