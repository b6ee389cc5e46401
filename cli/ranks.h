// The ranks of a run: this process is one of them where a launcher has started it so, else it starts them all itself.
#pragma once

#include "cli/machine.h"
#include "config/config.h"
#include "exec/mesh_ranks.h"

#include <exception>
#include <functional>
#include <memory>

namespace tokamak {

/// Thrown on a rank that does not lead, when the one that leads tells the user what is wrong.
class ToldByLeader : public std::exception {};

/// What one rank works with.
struct RankContext {
  const RunConfig& config;  // with the sizes of its mesh
  const Machine& machine;
  const MeshRanks* ranks;                        // null: one rank
  int in_process = 1;                            // of the ranks, this one and others that are threads of this process
  std::function<void()> outlive_leader = [] {};  // gives this rank end_times::kToSave when others are gone
  /// Ends this process, and those that it has started, because ranks are lost; where it should not, nothing.
  std::function<void(const std::string& why)> end_lost = [](const std::string&) {};
  /// One more communicator of all ranks, in the host's memory on GPUs, too, whose waits end only with the run; all call
  /// it at the same time. Empty where ranks are threads.
  std::function<std::unique_ptr<Communicator>()> open_links = {};
};

/// "rank 2: " for messages of a process that has not rank 0 among its ranks; else empty. Never throws a UserError.
std::string rank_prefix();

/// Whether a launcher, or a process of the run, has started this process as one rank of several.
bool is_one_of_several();

/// begin_machine, where this process will be the only rank.
std::jthread begin_alone(const MeshConfig& mesh, const std::string& device);

/// Whether this process has rank 0 among its ranks.
bool has_first_rank();

/// The mesh of the ranks that `run_on_ranks` would run: where a launcher has started this process, those of its world.
/// UserError when the mesh does not fit it.
Mesh mesh_of_run(const RunConfig& config);

/// What one rank compiles on a GPU: what `work` asks for, or also, before there is a backend, what a step takes.
enum class Compiles : uint8_t { kWhatIsAsked, kStepEarly };

/// Runs `work` on every rank of config.mesh that belongs to this process: on the CPU ranks are threads, on GPUs other
/// processes, started with this one's arguments; under torchrun, mpirun or srun this process is one
/// rank. Returns when all that it started have ended. UserError before anything is started when the mesh does not fit
/// the number of ranks or GPUs; what a rank throws ends all of them and is thrown by the one that leads.
void run_on_ranks(const RunConfig& config, const std::function<void(const RankContext&)>& work,
                  Compiles compiles = Compiles::kWhatIsAsked);

}  // namespace tokamak
