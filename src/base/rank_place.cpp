#include "base/rank_place.h"

#include <charconv>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/checksum.h"
#include "base/error.h"

namespace tokamak {
namespace {

constexpr int kUsualPort = 29500;  // torchrun's
constexpr int kMostJoinSeconds = 7 * 24 * 3600;
constexpr int kJobPorts = 1000;  // from there on: jobs that share a machine seldom meet on one

class Environment {
 public:
  Environment(const std::function<const char*(const char*)>& variable, std::string launcher)
      : variable_(variable), launcher_(std::move(launcher)) {}

  bool has(const char* name) const { return variable_(name) && *variable_(name); }
  bool has_any(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (has(name)) return true;
    return false;
  }
  std::string text(const char* name, std::string_view otherwise = "") const {
    return has(name) ? variable_(name) : std::string(otherwise);
  }

  /// The first of them that is set must be a number in [least, most].
  int number(std::initializer_list<const char*> names, int least, int most) const {
    for (const char* name : names) {
      if (!has(name)) continue;
      std::string value = text(name);
      int number = 0;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || number < least || number > most)
        user_error("[rendezvous] expected {}, set by {}, to be a number from {} to {}, got '{}'; correct how it is set",
                   name, launcher_, least, most, value);
      return number;
    }
    missing(*names.begin());
  }

  [[noreturn]] void missing(const char* name, std::string_view advice = "start all ranks in the same way") const {
    user_error("[rendezvous] expected {} in the environment, as {} seems to have started this process; {}", name,
               launcher_, advice);
  }

  const std::string& launcher() const { return launcher_; }

 private:
  const std::function<const char*(const char*)>& variable_;
  std::string launcher_;
};

struct Names {
  std::initializer_list<const char*> rank, world, local_rank;
};

RankPlace numbers(const Environment& environment, const Names& names) {
  RankPlace place;
  place.launcher = environment.launcher();
  place.world = environment.number(names.world, 1, 1 << 20);
  place.rank = environment.number(names.rank, 0, place.world - 1);
  place.local_rank = environment.number(names.local_rank, 0, place.rank);
  return place;
}

void set_port(RankPlace& place, const Environment& environment, int otherwise) {
  place.port = environment.has_any({"TOKAMAK_PORT", "MASTER_PORT"})
                   ? environment.number({"TOKAMAK_PORT", "MASTER_PORT"}, 1, 65535)
                   : otherwise;
}

RankPlace from_torchrun(const Environment& environment) {
  if (!environment.has("LOCAL_RANK")) environment.missing("LOCAL_RANK", "set it to 0 with one process a machine");
  RankPlace place = numbers(environment, {{"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}});
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (!environment.has(name)) environment.missing(name);
  place.host = environment.text("MASTER_ADDR");
  set_port(place, environment, kUsualPort);
  // Then MASTER_PORT is taken by torchrun's own store.
  if (environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True" && !environment.has("TOKAMAK_PORT")) ++place.port;
  place.token = environment.text("TORCHELASTIC_RUN_ID");
  if (place.token == "none") place.token.clear();  // what torchrun sets where it was given none
  return place;
}

RankPlace from_mpirun(const Environment& environment) {
  bool open_mpi = environment.has("OMPI_COMM_WORLD_RANK") || environment.has("OMPI_COMM_WORLD_SIZE");
  RankPlace place =
      open_mpi
          ? numbers(environment, {{"OMPI_COMM_WORLD_RANK"}, {"OMPI_COMM_WORLD_SIZE"}, {"OMPI_COMM_WORLD_LOCAL_RANK"}})
          : numbers(environment, {{"PMI_RANK"}, {"PMI_SIZE"}, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}});
  std::string local = environment.text(open_mpi ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS");
  if (!environment.has("MASTER_ADDR") && local != std::to_string(place.world))
    environment.missing("MASTER_ADDR",
                        "the ranks are on several machines: set it to that of rank 0 (mpirun -x, -genv)");
  place.host = environment.text("MASTER_ADDR", "127.0.0.1");
  place.token = environment.text("PMIX_NAMESPACE");
  uint64_t job = place.token.empty() ? 0 : checksum(std::as_bytes(std::span(place.token)));
  set_port(place, environment, kUsualPort + int(job % kJobPorts));
  return place;
}

/// Of a list as Slurm writes it: "gpu[07-09,12],cpu3" has gpu07.
std::string first_host(std::string_view list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    size_t end = list.find(']', at);
    if (end == list.npos) return "";
    std::string_view numbers = list.substr(at + 1, end - at - 1);
    host += numbers.substr(0, numbers.find_first_of(",-"));
    at = end;
  }
  return host;
}

RankPlace from_srun(const Environment& environment) {
  RankPlace place = numbers(environment, {{"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS"}, {"SLURM_LOCALID"}});
  std::string list = environment.text("SLURM_STEP_NODELIST", environment.text("SLURM_JOB_NODELIST"));
  place.host = environment.text("MASTER_ADDR", first_host(list));
  if (place.host.empty()) environment.missing("SLURM_STEP_NODELIST", "set MASTER_ADDR to the machine of rank 0");
  int job = environment.has("SLURM_JOB_ID") ? environment.number({"SLURM_JOB_ID"}, 0, 0x7fffffff) : 0;
  set_port(place, environment, kUsualPort + job % kJobPorts);
  place.token = fmt::format("{}.{}", environment.text("SLURM_JOB_ID"), environment.text("SLURM_STEP_ID"));
  return place;
}

// Hydra's and Intel's mpirun speak PMI. So does srun --mpi=pmi2, but says a rank's place on its machine as ever.
bool is_of_mpirun(const Environment& mpirun, const Environment& srun) {
  if (mpirun.has_any({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"})) return true;
  if (!mpirun.has_any({"PMI_RANK", "PMI_SIZE"})) return false;
  return !srun.has("SLURM_STEP_NUM_TASKS") || mpirun.has_any({"MPI_LOCALRANKID", "PMI_LOCAL_RANK"});
}

}  // namespace

std::optional<RankPlace> rank_place(const std::function<const char*(const char* name)>& variable) {
  Environment torchrun(variable, "torchrun"), mpirun(variable, "mpirun"), srun(variable, "srun");
  std::optional<RankPlace> place;
  if (torchrun.has_any({"RANK", "WORLD_SIZE", "LOCAL_RANK"}))
    place = from_torchrun(torchrun);
  else if (is_of_mpirun(mpirun, srun))
    place = from_mpirun(mpirun);
  else if (srun.has("SLURM_STEP_NUM_TASKS"))  // which sbatch and salloc alone do not set
    place = from_srun(srun);
  if (!place) return place;
  Environment user(variable, "you");
  if (user.has("TOKAMAK_TOKEN")) place->token = user.text("TOKAMAK_TOKEN");
  if (user.has("TOKAMAK_JOIN_SECONDS"))
    place->join_seconds = user.number({"TOKAMAK_JOIN_SECONDS"}, 1, kMostJoinSeconds);
  return place;
}

std::string launcher_mark(const std::function<const char*(const char* name)>& variable) {
  Environment environment(variable, "");
  for (const char* name : {"TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (environment.has(name) && rank_place(variable)) return name;
  return "";
}

}  // namespace tokamak
