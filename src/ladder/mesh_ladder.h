// The ladder on a mesh: the best run of one rank, divided over several in the ways that the model allows. A rung has as
// many sequences for each rank as the one rank had alone, whatever the mesh divides. Tests:
// tests/mesh/mesh_ladder_test.cpp.
#pragma once

#include "ladder/ladder.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

class MeshRanks;

/// A way to use all ranks.
struct MeshRung {
  std::string name;  // "data 4, ZeRO 2"
  MeshConfig mesh;
};

/// As it is configured, with mesh.data said.
MeshRung mesh_rung(const MeshConfig& asked);

/// Each of the ways to divide a run over the ranks that `asked` has, and `asked` itself where it is none of them. What
/// it says beside sizes and ZeRO's stage holds for all.
std::vector<MeshRung> mesh_rungs(const MeshConfig& asked);

/// `config`, whose step is that of so many ranks together, for one of them alone: with its share of the sequences and
/// without a mesh. UserError when they do not divide them.
RunConfig for_one_rank(RunConfig config, int64_t ranks);

struct MeshResult {
  MeshRung rung;
  int64_t ranks = 1;
  int64_t sequences = 0;  // of a step, of all ranks together
  /// Tokens and FLOPs are those of all ranks, MFU of the peak of all, bytes those of one. speedup_total is over one
  /// rank, 0 where that had no run.
  RungResult run;
  double predicted_exposed_ms = 0;   // as exposed_ms
  std::optional<double> exposed_ms;  // by how much a step is longer than one that sends nothing
  double efficiency() const { return run.speedup_total / double(ranks); }
};

/// The fastest rung that was kept; where none was, the last of those that might have been. null: there are none.
const RungResult* best_rung(const std::vector<RungResult>& rungs);

struct MeshLadderOptions {
  LadderOptions ladder;
  int ranks_of_process = 1;  // of which Backend::used_bytes tells the sum
};

/// Runs `rungs` with the configuration of `best`, a rung of one rank. All ranks of `ranks` call it with the same rungs
/// and get as many results; `best` and numbers are of the one that leads, which alone calls `report`, after each. What
/// does not fit model or memory is reported with its `failure`.
std::vector<MeshResult> run_mesh_ladder(const RungResult& best, const Platform& platform, Backend& backend,
                                        const MeshRanks& ranks, const std::vector<MeshRung>& rungs,
                                        const MeshLadderOptions& options,
                                        const std::function<void(const MeshResult&)>& report);

}  // namespace tokamak
