// A checkpoint in the memory of several machines. Each machine has one of its own, with what its ranks write, and a
// copy of what those of the machine before it do; the rest are holes. state.json is that of the whole. Tests:
// tests/mesh/kept_save_test.cpp.
#pragma once

#include "checkpoint/peer_copies.h"
#include "checkpoint/shared_save.h"

namespace tokamak {

/// As begin_save(), into `folder`, of which each machine has its own; there is only the newest when all have it.
/// `links`: of all ranks, in the host's memory, for the second part; it and `machines` must outlive that.
CompleteSave begin_kept_save(const std::filesystem::path& folder, const CheckpointState& state,
                             const TensorStore& store, const RankMachines& machines, Communicator& links,
                             Exchange exchange);

}  // namespace tokamak
