#include "run/memory_states.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory_sharers.h"
#include "base/system.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/find_together.h"
#include "checkpoint/kept_parts.h"
#include "run/rank_decisions.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSecondsFile = "step_seconds";

// Of the ranks that share one folder, or are alone, the first has it all.
void gather(const MemoryStates& memory, int64_t saved_step, std::vector<std::string>* warnings,
            const MeshRanks* ranks) {
  auto exchange = [&](std::string_view mine) {
    return ranks ? ranks->world().exchange(mine) : std::vector<std::string>{std::string(mine)};
  };
  if (memory.others)
    return gather_kept_parts(memory.folder, saved_step, {memory.others->machines, memory.others->links.get(), exchange},
                             warnings);
  std::vector<std::string> alike(ranks ? size_t(ranks->world().size()) : 1);
  RankMachines one(alike, alike, ranks ? int(ranks->rank()) : 0);
  gather_kept_parts(memory.folder, saved_step, {one, nullptr, exchange}, warnings);
}

}  // namespace

std::string MemoryStates::place() const { return memory_place() + ":" + folder.string(); }

MemoryStates agree_on_memory(const MemoryStates& asked, const MeshRanks* ranks) {
  if (!ranks) return asked;
  require_same(ranks, "--memory_every", fmt::format("{}", asked.every));
  MemoryStates memory = asked;
  if (any_of(ranks, !memory.are_kept())) memory.folder.clear();
  if (!memory.are_kept()) return memory;
  Communicator& world = ranks->world();
  RankMachines machines(world.exchange(memory.place()), world.exchange(host_name()), world.rank());
  if (machines.count() > 1 && memory.open_links)
    memory.others = std::make_shared<MemoryOfMachines>(MemoryOfMachines{std::move(machines), memory.open_links()});
  return memory;
}

// A state that is damaged is as good as none: there are saves.
std::optional<FoundCheckpoint> find_kept_state(const MemoryStates& memory, const fs::path& out,
                                               std::vector<std::string>* warnings, const MeshRanks* ranks) {
  std::optional<FoundCheckpoint> kept;
  if (!memory.are_kept()) return kept;
  std::optional<FoundCheckpoint> saved = peek_checkpoint(out);
  int64_t saved_step = std::stoll(of_leader(ranks, std::to_string(saved ? saved->state.step : -1)));
  gather(memory, saved_step, warnings, ranks);
  try {
    kept = find_together(memory.folder, warnings, ranks, memory.place());
  } catch (const UserError& error) {  // the same on all
    warnings->emplace_back(error.what());
  }
  return kept;
}

bool leads_memory(const MemoryStates& memory, const MeshRanks* ranks) {
  return memory.others ? memory.others->machines.is_first() : leads(ranks);
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
