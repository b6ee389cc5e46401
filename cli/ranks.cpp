#include "cli/ranks.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backend/agreement.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/nccl.h"
#include "backend/ranks/inprocess.h"
#include "backend/ranks/processes.h"
#include "base/communication_error.h"
#include "base/error.h"
#include "base/failure_deadline.h"
#include "base/memory_sharers.h"
#include "base/parallel.h"
#include "base/printable.h"
#include "base/rendezvous.h"
#include "base/socket.h"
#include "base/system.h"
#include "cli/end_times.h"
#include "cli/failure_place.h"
#include "cli/hangs.h"
#include "cli/join_watch.h"
#include "cli/launcher_watch.h"
#include "cli/local_ranks.h"
#include "cli/run_token.h"
#include "cli/streams.h"
#include "cli/version.h"
#include "config/json.h"
#include "config/validate.h"
#include "passes/step_mesh.h"

namespace tokamak {
namespace {

using Work = std::function<void(const RankContext&)>;

constexpr double kEndlessSeconds = 1e6;

RunConfig with_mesh(RunConfig config, const Mesh& mesh) {
  config.mesh.data = mesh.size(kDataAxis);
  validate(config);
  if (mesh.num_ranks() > 1 && config.device.starts_with("cuda:"))
    user_error(
        "[device] expected auto, cpu or cuda for {} ranks, each on a GPU of its own, got '{}'; choose GPUs with "
        "CUDA_VISIBLE_DEVICES",
        mesh.num_ranks(), config.device);
  return config;
}

// What must be the same on all ranks before any of them begins.
void require_same_program(Communicator& world, const RunConfig& config) {
  const Fact facts[] = {{"version of tokamak", kVersion}, {"configuration", to_json(config)}};
  require_agreement(world, facts);
}

void run_alone(const RunConfig& config, const Work& work, Compiles compiles) {
  std::optional<EarlyStep> early;
  if (compiles == Compiles::kStepEarly) early.emplace(config);
  Machine machine = open_machine(config, CpuRates::kMeasured, early ? early->compiler() : nullptr);
  if (early) early->stop();
  if (!machine.is_gpu) early.reset();
  work({config, machine, nullptr});
}

// Threads share the cores and the memory, and see each other.
void run_on_threads(RunConfig config, const Mesh& mesh, const Work& work) {
  auto ranks = int(mesh.num_ranks());
  set_num_threads(int(config.threads));
  config.threads = std::max(num_threads() / ranks, 1);
  Platform platform = open_machine(config).platform;
  ThreadHangs hangs(config, ranks);
  run_ranks(ranks,
            [&](Communicator& world) {
              MeshRanks mesh_ranks(mesh, world);
              Machine machine{.platform = platform, .backend = cpu::make_backend(ranks)};
              try {
                work({config, machine, &mesh_ranks, ranks});
              } catch (const std::exception& error) {
                if (!is_device_failure(error)) throw;
                throw CommunicationError(hangs.failure_place(world.rank()).of_own(error.what()));
              }
            },
            {.progress = hangs.progress(), .on_start = [&](const auto& abort) { hangs.watch(abort); }});
}

// Ranks that may use the same cores of a machine share them, where nobody says otherwise: with more threads than cores
// they wait for each other's.
int64_t threads_of_rank(StoreClient& store, int64_t asked) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::string mine = host_name() + ":" + std::string(reinterpret_cast<const char*>(&cores), sizeof cores);
  std::vector<std::string> all = store.exchange("cores", store.rank(), store.world(), mine);
  if (asked > 0 || std::getenv("OMP_NUM_THREADS")) return asked;
  set_num_threads(0);
  return std::max<int64_t>(num_threads() / std::count(all.begin(), all.end(), mine), 1);
}

// On the CPU rank 0 has measured for all, as that takes hundreds of megabytes; and ranks share the memory of a machine.
void share_cpu(Machine& machine, Communicator& world) {
  machine.platform.target = parse_target(adopt(world, print(machine.platform.target)));
  std::vector<std::string> places = world.exchange(memory_place());
  auto sharers = std::count(places.begin(), places.end(), places[size_t(world.rank())]);
  machine.backend = cpu::make_backend(int(sharers));
}

// Where others reach this machine. `of_store`: where it is connected to the store.
std::string own_address(const RunConfig& config, const std::string& of_store) {
  const std::string& interface = config.mesh.interface;
  return interface.empty() ? of_store : interface_address(interface, of_store);
}

// NCCL looks for networks itself, unless its variable says which one; the user's own value stays.
void tell_nccl_the_interface(const RunConfig& config) {
  if (!config.mesh.interface.empty()) ::setenv("NCCL_SOCKET_IFNAME", ("=" + config.mesh.interface).c_str(), 0);
}

// What ends it as others are gone names these with their hosts and devices.
template <typename Calls>
auto naming_others(const ProcessHangs& hangs, const Calls& calls) {
  try {
    return calls();
  } catch (const CommunicationError& error) {
    throw CommunicationError(hangs.failure_place().of_other(error.what()));
  }
}

using EndLost = std::function<void(const std::string&)>;

// A rank that is a process.
struct RankProcess {
  Rendezvous& others;
  int local_rank = 0;  // among those of its machine: its GPU
  EndLost end_lost;    // of RankContext; may be empty
};

std::unique_ptr<Communicator> open_world(const RunConfig& config, const RankProcess& process,
                                         const std::string& address, const std::shared_ptr<RankProgress>& progress) {
  StoreClient& store = process.others.store();
  if (!is_gpu_device(config)) return make_process_world(store, {.address = address, .progress = progress});
  return cuda::make_nccl_world(store, {.device = process.local_rank,
                                       .cache = cuda::default_cache(),
                                       .mailbox_bytes = config.mesh.mailbox_mib << 20,
                                       .progress = progress});
}

// One rank of several processes, on the CPU or on a GPU of its own.
void run_as_rank(RunConfig config, const Mesh& mesh, const RankProcess& process, FailureDeadline& deadline,
                 const Work& work) {
  StoreClient& store = process.others.store();
  std::string address = own_address(config, process.others.address());
  tell_nccl_the_interface(config);
  RunConfig same = config;
  same.mesh.interface.clear();  // a machine's own
  bool is_gpu = is_gpu_device(config);
  ProcessHangs hangs(config, store, is_gpu ? fmt::format("GPU {}", process.local_rank) : "CPU");
  if (is_gpu) config.device = gpu_name(process.local_rank);
  RunConfig here = config;
  here.threads = threads_of_rank(store, config.threads);
  Machine machine = open_machine(here, is_gpu || store.rank() == 0 ? CpuRates::kMeasured : CpuRates::kTypical);
  std::unique_ptr<Communicator> world =
      naming_others(hangs, [&] { return open_world(config, process, address, hangs.progress()); });
  require_same_program(*world, same);
  if (!is_gpu) share_cpu(machine, *world);
  world->compare_calls(false);  // the graph is one for all ranks
  MeshRanks ranks(mesh, *world);
  auto outlive = [&] { deadline.allow(end_times::kToSave), outlive_leader(); };
  auto end_named = [&](const std::string& why) {
    if (process.end_lost) process.end_lost(hangs.failure_place().of_other(why));
  };
  auto open_links = [&] {
    return make_process_world(store, {.address = address, .timeout_seconds = kEndlessSeconds, .key = "links"});
  };
  naming_others(hangs, [&] {
    try {
      work({config, machine, &ranks, 1, outlive, end_named, open_links});
      world->barrier(machine.backend->queue(0));
      machine.backend->synchronize();
    } catch (const CommunicationError&) {
      throw;
    } catch (const std::exception& error) {
      store.fail(hangs.failure_place().of_own(error.what()));  // the first that is told counts
      throw;
    }
  });
}

// What one rank throws ends all of them.
void run_and_tell(const RunConfig& config, StoreClient& store, const std::function<void(FailureDeadline&)>& rank) {
  FailureDeadline deadline(end_times::kByItself,
                           [&](const std::string& reason) { end_late_process(reason, tells(store)); });
  deadline.watch(store);
  bool leads = store.rank() == 0;
  try {
    rank(deadline);
  } catch (const CommunicationError&) {
    if (tells(store)) throw;
    throw ToldByLeader();
  } catch (const std::exception& error) {
    bool device_failed = is_device_failure(error) || (is_gpu_device(config) && !cuda::device_failure().empty());
    store.fail(fmt::format("rank {} on {} failed: {}", store.rank(), host_name(), error.what()));
    if (leads && device_failed) throw CommunicationError(store.failure());
    if (leads) throw;
    throw ToldByLeader();
  }
}

void run_on_processes(const RunConfig& config, const Mesh& mesh, const Work& work) {
  constexpr double kJoinSeconds = 60;
  auto ranks = int(mesh.num_ranks());
  if (is_gpu_device(config) && cuda::device_count() < ranks)
    user_error(
        "[mesh] expected {} GPUs on this machine for the mesh {}, got {}; use a smaller mesh, or start ranks on "
        "several machines with torchrun, mpirun or srun",
        ranks, to_string(mesh), cuda::device_count());
  RankPlace place{.launcher = "tokamak",
                  .world = ranks,
                  .host = "127.0.0.1",
                  .token = random_nonce(),
                  .join_seconds = kJoinSeconds};
  StoreServer server(place.host, place.port, ranks, place.token);
  LocalRanks others;
  if (config.mesh.hang_seconds == 0) others.leave_stopped_ones();
  others.start(ranks, place.token, server);
  Rendezvous rendezvous(place, server);
  auto begins = [&](const RankContext& rank) {
    others.leave_stopped_ones();
    work(rank);
  };
  auto end_lost = [&](const std::string& why) {
    others.end();
    end_late_process(why, /*tells=*/true);
  };
  run_and_tell(config, rendezvous.store(), [&](FailureDeadline& deadline) {
    run_as_rank(config, mesh, {rendezvous, 0, end_lost}, deadline, begins);
  });
}

// On the CPU threads do as well, and save the copies; TOKAMAK_RANKS=processes asks for processes all the same.
bool wants_processes(const RunConfig& config) {
  const char* asked = std::getenv("TOKAMAK_RANKS");
  return is_gpu_device(config) || (asked && std::string_view(asked) == "processes");
}

// As one of several that a launcher has started.
std::optional<RankPlace> place_among_others() {
  std::optional<RankPlace> place = rank_place([](const char* name) -> const char* { return std::getenv(name); });
  return place && place->world > 1 ? place : std::nullopt;
}

// Rank 0 serves the store for as long as the run takes.
struct Joined {
  std::unique_ptr<StoreServer> server;  // of rank 0
  std::unique_ptr<Rendezvous> rendezvous;
};

Joined join_others(const RankPlace& place) {
  Joined joined;
  if (place.rank == 0) joined.server = std::make_unique<StoreServer>(place.host, place.port, place.world, place.token);
  JoinWatch watch(place, joined.server.get());
  joined.rendezvous =
      joined.server ? std::make_unique<Rendezvous>(place, *joined.server) : std::make_unique<Rendezvous>(place);
  return joined;
}

}  // namespace

std::string rank_prefix() {
  try {
    std::optional<RankPlace> place = place_among_others();
    return place && place->rank > 0 ? fmt::format("rank {}: ", place->rank) : "";
  } catch (const UserError&) {  // the environment may be what is wrong
    return "";
  }
}

bool is_one_of_several() { return place_among_others().has_value(); }

std::jthread begin_alone(const MeshConfig& mesh, const std::string& device) {
  if (std::max({mesh.data, mesh.pipe, mesh.context, mesh.tensor}) > 1 || is_one_of_several()) return {};
  return begin_machine(device);
}

bool has_first_rank() {
  std::optional<RankPlace> place = place_among_others();
  return !place || place->rank == 0;
}

Mesh mesh_of_run(const RunConfig& config) {
  std::optional<RankPlace> place = place_among_others();
  return step_mesh(config.mesh, place ? place->world : 0);
}

void run_on_ranks(const RunConfig& asked, const Work& work, Compiles compiles) {
  LauncherWatch launcher;
  Mesh mesh = mesh_of_run(asked);
  RunConfig config = with_mesh(asked, mesh);
  if (std::optional<RankPlace> place = place_among_others()) {
    if (place->token.empty()) place->token = run_token(config, place->world);
    Joined joined = join_others(*place);
    Rendezvous& all = *joined.rendezvous;
    EndLost end_lost;  // a launcher's ranks may have to tell each other
    if (is_local_rank()) end_lost = [&](const std::string& why) { end_late_process(why, tells(all.store())); };
    return run_and_tell(config, all.store(), [&](FailureDeadline& deadline) {
      run_as_rank(config, mesh, {all, place->local_rank, end_lost}, deadline, work);
    });
  }
  if (mesh.num_ranks() == 1) return run_alone(config, work, compiles);
  wants_processes(config) ? run_on_processes(config, mesh, work) : run_on_threads(config, mesh, work);
}

}  // namespace tokamak
