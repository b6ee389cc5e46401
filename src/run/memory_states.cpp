#include "run/memory_states.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/find_together.h"
#include "run/rank_decisions.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSecondsFile = "step_seconds";

}  // namespace

// A state that is damaged is as good as none: there are saves.
std::optional<FoundCheckpoint> find_kept_state(const MemoryStates& memory, const fs::path& out,
                                               std::vector<std::string>* warnings, const MeshRanks* ranks) {
  std::optional<FoundCheckpoint> kept;
  if (any_of(ranks, !memory.are_kept())) return kept;
  try {
    kept = find_together(memory.folder, warnings, ranks);
  } catch (const UserError& error) {  // the same on all
    warnings->emplace_back(error.what());
  }
  std::optional<FoundCheckpoint> saved = peek_checkpoint(out);
  bool is_newer = kept && (!saved || saved->state.step < kept->state.step);
  return any_of(ranks, !is_newer) ? std::nullopt : kept;
}

void forget_kept_states(const MemoryStates& memory) {
  std::error_code absent;
  if (memory.are_kept()) fs::remove_all(checkpoints_folder(memory.folder), absent);
}

void note_step_seconds(const fs::path& state, double seconds) {
  write_file_atomic(state / kSecondsFile, fmt::format("{}", seconds));
}

double noted_step_seconds(const fs::path& state) {
  std::error_code absent;
  if (!fs::exists(state / kSecondsFile, absent)) return 0;
  return std::atof(read_file(state / kSecondsFile).c_str());
}

}  // namespace tokamak
