#include "backend/ranks/processes.h"

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/rendezvous.h"
#include "tests/support/communicator_suite.h"
#include "tests/support/rank_threads.h"
#include "tests/support/spawn_ranks.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tokamak::test {
namespace {

void run_suite(StoreClient& store, bool one_host = true) {
  auto world = make_process_world(store, {.address = "127.0.0.1", .one_host = one_host});
  std::unique_ptr<Backend> backend = cpu::make_backend();
  for (const SuiteCase& suite_case : communicator_suite()) {
    SCOPED_TRACE(suite_case.name);
    suite_case.run({*world, *backend});
  }
  world->barrier();
}

class ProcessesSuite : public testing::TestWithParam<int> {};

// Each a world of its own: starting processes takes longer.
TEST_P(ProcessesSuite, IsRightOnThreads) {
  with_stores(GetParam(), [](StoreClient& store) { run_suite(store); });
}

TEST_P(ProcessesSuite, IsRightAsBetweenMachines) {
  with_stores(GetParam(), [](StoreClient& store) { run_suite(store, false); });
}

INSTANTIATE_TEST_SUITE_P(Processes, ProcessesSuite, testing::Values(1, 3, 8), testing::PrintToStringParamName());

class RanksAsProcesses : public testing::TestWithParam<int> {};

TEST_P(RanksAsProcesses, SuiteIsRight) {
  std::vector<int> statuses = spawn_ranks(GetParam(), [](const RankPlace& place) {
    Rendezvous rendezvous(place);
    EXPECT_EQ(rendezvous.address(), "127.0.0.1");
    run_suite(rendezvous.store());
  });
  EXPECT_EQ(statuses, std::vector<int>(size_t(GetParam()), 0));
}

INSTANTIATE_TEST_SUITE_P(Processes, RanksAsProcesses, testing::Values(2, 4), testing::PrintToStringParamName());

TEST(Processes, WrongCallsEndInAnErrorOnAllRanks) {
  for (int ranks : {2, 4})
    for (const WrongCase& wrong : wrong_cases())
      with_stores(ranks, [&](StoreClient& store) {
        std::unique_ptr<Backend> backend = cpu::make_backend();
        expect_communication_error(wrong, [&] {
          // Four that all send first wait in a circle.
          auto world = make_process_world(store, {.address = "127.0.0.1", .timeout_seconds = 3});
          wrong.run({*world, *backend});
        });
      });
}

// The others learn of it in an axis of which it is no member, too.
TEST(Processes, ProcessThatIsKilledStopsTheOthersWithinSeconds) {
  std::vector<int> statuses = spawn_ranks(4, [](const RankPlace& place) {
    Rendezvous rendezvous(place);
    auto begin = std::chrono::steady_clock::now();
    try {
      auto world = make_process_world(rendezvous.store(), {.address = rendezvous.address()});
      int first = place.rank / 2 * 2;
      auto pair = world->split("pair", std::vector<int64_t>{first, first + 1});
      if (place.rank == 3) ::raise(SIGKILL);
      while (true) pair->barrier();
    } catch (const CommunicationError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 3 on "), std::string::npos) << error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));  // not the ten minutes of a call
  });
  statuses.resize(4);
  EXPECT_EQ(std::vector<int>(statuses.begin(), statuses.begin() + 3), std::vector<int>(3, 0));
  if (!std::getenv("TOKAMAK_TEST_IS_RANK")) {
    EXPECT_TRUE(WIFSIGNALED(statuses[3]));
  }
}

}  // namespace
}  // namespace tokamak::test
