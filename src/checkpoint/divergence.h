// What a run that has diverged can go on from. Tests: tests/checkpoint/divergence_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tokamak {

/// A sentence on the checkpoints of the run in `out`, by step, and on what to do. `first`: the step with which it began
/// to give what is no number, or to leave the band of losses (checkpoint/known_good.h). A checkpoint of the step before
/// that has the very parameters that gave it, as have those of steps since that changed nothing: going on from there
/// gives it again, unless with `change`, a setting in words that helps with just that (may be empty).
std::string advise_after_divergence(const std::filesystem::path& out, int64_t first, const std::string& change = "");

}  // namespace tokamak
