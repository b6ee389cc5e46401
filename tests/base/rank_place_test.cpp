#include "base/rank_place.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankPlace> place_in(const Variables& variables) {
  return rank_place([&](const char* name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29400"},
                             {"TORCHELASTIC_RUN_ID", "abc"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const Variables kSlurm = {{"SLURM_PROCID", "9"},      {"SLURM_STEP_NUM_TASKS", "16"},
                          {"SLURM_LOCALID", "1"},     {"SLURM_STEP_NODELIST", "gpu[07-09,12],cpu3"},
                          {"SLURM_JOB_ID", "123456"}, {"SLURM_STEP_ID", "0"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(RankPlace, IsNothingWithoutALauncher) {
  EXPECT_EQ(place_in({}), std::nullopt);
  EXPECT_EQ(place_in({{"MASTER_ADDR", "x"}, {"TOKAMAK_TOKEN", "t"}}), std::nullopt);
  EXPECT_EQ(place_in({{"RANK", ""}}), std::nullopt);
  // sbatch and salloc start one process and speak of all.
  EXPECT_EQ(place_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), std::nullopt);
}

TEST(RankPlace, OfTorchrun) {
  EXPECT_EQ(place_in(kTorchrun), (RankPlace{"torchrun", 5, 8, 1, "node0", 29400, "abc"}));
  EXPECT_EQ(place_in(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->port, 29401);
  EXPECT_EQ(place_in(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}}))->token, "") << "the same for all runs";
  EXPECT_EQ(place_in(with(kTorchrun, {{"TOKAMAK_PORT", "7"}, {"TOKAMAK_TOKEN", "s"}})),
            (RankPlace{"torchrun", 5, 8, 1, "node0", 7, "s"}));
}

TEST(RankPlace, HasTheTimeThatIsGivenToCome) {
  EXPECT_EQ(place_in(kSlurm)->join_seconds, 300);
  EXPECT_EQ(place_in(with(kSlurm, {{"TOKAMAK_JOIN_SECONDS", "3600"}}))->join_seconds, 3600);
  for (const char* seconds : {"0", "-1", "1e3", "soon"})
    expect_user_error(
        [&] {
          place_in(with(kSlurm, {{"TOKAMAK_JOIN_SECONDS", seconds}}));
        },
        {"TOKAMAK_JOIN_SECONDS", "set by you", "1 to 604800", seconds});
}

TEST(RankPlace, OfMpirun) {
  EXPECT_EQ(place_in(kOpenMpi), (RankPlace{"mpirun", 3, 4, 3, "127.0.0.1", 29500, ""}));
  Variables hosts = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  expect_user_error([&] { place_in(hosts); }, {"[rendezvous]", "MASTER_ADDR", "mpirun", "several machines"});
  EXPECT_EQ(place_in(with(hosts, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "77"}})),
            (RankPlace{"mpirun", 3, 4, 1, "a", 77, ""}));
  EXPECT_EQ(place_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MASTER_ADDR", "h"}}),
            (RankPlace{"mpirun", 1, 2, 0, "h", 29500, ""}));
}

TEST(RankPlace, JobsOfMpirunThatShareAMachineHavePortsOfTheirOwn) {
  auto place = [](const std::string& job) { return *place_in(with(kOpenMpi, {{"PMIX_NAMESPACE", job}})); };
  EXPECT_EQ(place("1662844929").token, "1662844929");
  EXPECT_EQ(place("1662844929").port, place("1662844929").port);
  EXPECT_NE(place("1662844929").port, place("1662910465").port);
  for (const char* job : {"1662844929", "prterun-host-17@1"}) {
    EXPECT_GE(place(job).port, 29500);
    EXPECT_LT(place(job).port, 30500);
  }
}

TEST(RankPlace, OfSrun) {
  EXPECT_EQ(place_in(kSlurm), (RankPlace{"srun", 9, 16, 1, "gpu07", 29956, "123456.0"}));
  auto host = [](const std::string& list) { return place_in(with(kSlurm, {{"SLURM_STEP_NODELIST", list}}))->host; };
  EXPECT_EQ(host("a,b"), "a");
  EXPECT_EQ(host("rack[2,4]n[03-05]x"), "rack2n03x");
  expect_user_error([&] { host("gpu["); }, {"SLURM_STEP_NODELIST", "MASTER_ADDR"});
  EXPECT_EQ(place_in(with(kSlurm, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}}))->host, "m");
}

TEST(RankPlace, OfSrunThatSpeaksPmi) {
  Variables pmi2 = with(kSlurm, {{"PMI_RANK", "9"}, {"PMI_SIZE", "16"}, {"PMI_JOBID", "123456.0"}});
  EXPECT_EQ(place_in(pmi2), place_in(kSlurm));
  Variables hydra = with(pmi2, {{"MPI_LOCALRANKID", "1"}, {"MASTER_ADDR", "h"}});
  EXPECT_EQ(place_in(hydra)->launcher, "mpirun") << "which has started its own processes by srun";
}

TEST(RankPlace, TakesTheInnermostLauncher) {
  EXPECT_EQ(place_in(with(with(kSlurm, kOpenMpi), kTorchrun))->launcher, "torchrun");
  EXPECT_EQ(place_in(with(kSlurm, kOpenMpi))->launcher, "mpirun");
}

TEST(RankPlace, LauncherMarkIsWhatOnlyItsRanksHave) {
  auto mark = [](const Variables& variables) {
    return launcher_mark([&](const char* name) {
      auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(mark(kTorchrun), "TORCHELASTIC_RUN_ID");
  EXPECT_EQ(mark(kOpenMpi), "OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(mark(kSlurm), "SLURM_PROCID");
  EXPECT_EQ(mark({}), "");
  EXPECT_EQ(mark(without(kTorchrun, "TORCHELASTIC_RUN_ID")), "") << "set by hand, or by an operator of Kubernetes";
  EXPECT_EQ(mark({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "") << "a batch script";
}

TEST(RankPlace, SaysWhatIsMissing) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
    expect_user_error([&] { place_in(without(kTorchrun, name)); }, {"[rendezvous]", name, "torchrun"});
  expect_user_error([&] { place_in(without(kOpenMpi, "OMPI_COMM_WORLD_SIZE")); }, {"OMPI_COMM_WORLD_SIZE", "mpirun"});
  expect_user_error([&] { place_in(without(kSlurm, "SLURM_LOCALID")); }, {"SLURM_LOCALID", "srun"});
}

TEST(RankPlace, SaysWhatCannotBe) {
  auto expect = [](const Variables& more, std::initializer_list<std::string> pieces) {
    expect_user_error([&] { place_in(with(kTorchrun, more)); }, pieces);
  };
  expect({{"RANK", "8"}}, {"RANK", "0 to 7", "'8'"});
  expect({{"RANK", "-1"}}, {"RANK", "'-1'"});
  expect({{"RANK", "1x"}}, {"'1x'"});
  expect({{"WORLD_SIZE", "0"}}, {"WORLD_SIZE"});
  expect({{"LOCAL_RANK", "6"}}, {"LOCAL_RANK", "0 to 5"});
  expect({{"MASTER_PORT", "70000"}}, {"MASTER_PORT", "65535"});
}

}  // namespace
}  // namespace tokamak
