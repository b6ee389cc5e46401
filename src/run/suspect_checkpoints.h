// Checkpoints of a run that were saved after its last verified step, when one behind them was found to be wrong. Tests:
// tests/run/suspect_checkpoints_test.cpp.
#pragma once

#include "exec/mesh_ranks.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace tokamak {

/// Gives the checkpoints of steps beyond `verified` other names, suspect_step_00000150 beside the others, with which
/// nothing goes on. False, and nothing is changed, where none would be left, though the run did not begin there.
bool set_suspects_aside(const std::filesystem::path& run, int64_t verified);

/// On all ranks: the one that leads sets them aside, then all throw CorruptedStep, or a UserError where none is left.
[[noreturn]] void go_back(const MeshRanks* ranks, const std::filesystem::path& run, int64_t verified,
                          const std::string& wrong);

}  // namespace tokamak
