#include "backend/ranks/inprocess.h"

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "tests/support/communicator_suite.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <atomic>

namespace tokamak::test {
namespace {

struct SuiteRun {
  SuiteCase suite_case;
  int ranks;
};

std::string name_of(const testing::TestParamInfo<SuiteRun>& info) {
  return fmt::format("{}On{}", info.param.suite_case.name, info.param.ranks);
}

std::vector<SuiteRun> suite_runs() {
  std::vector<SuiteRun> runs;
  for (const SuiteCase& suite_case : communicator_suite())
    for (int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) runs.push_back({suite_case, ranks});
  return runs;
}

class InProcessSuite : public testing::TestWithParam<SuiteRun> {};

TEST_P(InProcessSuite, IsRight) {
  run_ranks(GetParam().ranks, [](Communicator& world) {
    std::unique_ptr<Backend> backend = cpu::make_backend();
    GetParam().suite_case.run({world, *backend});
  });
}

INSTANTIATE_TEST_SUITE_P(InProcess, InProcessSuite, testing::ValuesIn(suite_runs()), name_of);

// On 2 ranks, where all of them see the difference, and on 4, where some wait for others that have seen it.
class InProcessWrong : public testing::TestWithParam<int> {};

TEST_P(InProcessWrong, EndsInAnErrorOnAllRanks) {
  for (const WrongCase& wrong : wrong_cases()) {
    std::atomic<int> checked = 0;
    run_ranks(GetParam(),
              [&](Communicator& world) {
                std::unique_ptr<Backend> backend = cpu::make_backend();
                expect_communication_error(wrong, [&] { wrong.run({world, *backend}); });
                ++checked;
              },
              {.timeout_seconds = 3});  // four that all send first wait in a circle
    EXPECT_EQ(checked, GetParam()) << wrong.name;
  }
}

INSTANTIATE_TEST_SUITE_P(InProcess, InProcessWrong, testing::Values(2, 4), testing::PrintToStringParamName());

TEST(InProcess, ThrowsWhatARankThrows) {
  std::atomic<int> stopped = 0;
  auto body = [&](Communicator& world) {
    if (world.rank() == 2) user_error("[data] expected a file");
    try {
      world.barrier();
    } catch (const CommunicationError& error) {
      EXPECT_STREQ(error.what(), "rank 2 failed: [data] expected a file");
      ++stopped;
      throw;
    }
  };
  expect_user_error([&] { run_ranks(4, body); }, {"[data] expected a file"});
  EXPECT_EQ(stopped, 3);
}

// Others wait for it in a group of which it is no member: one rank's end is all ranks' end.
TEST(InProcess, RankThatThrowsStopsAllGroups) {
  auto body = [](Communicator& world) {
    auto pair = world.split("pair", std::vector<int64_t>{world.rank() / 2 * 2, world.rank() / 2 * 2 + 1});
    if (world.rank() == 3) user_error("gone");
    while (true) pair->barrier();
  };
  expect_user_error([&] { run_ranks(4, body); }, {"gone"});
}

TEST(InProcess, RankThatEndsEarlyIsNamed) {
  auto body = [](Communicator& world) {
    if (world.rank() != 1) world.barrier();
  };
  EXPECT_THROW(
      {
        try {
          run_ranks(2, body);
        } catch (const CommunicationError& error) {
          EXPECT_STREQ(error.what(), "[world] rank 0 waits in barrier for rank 1, which has ended");
          throw;
        }
      },
      CommunicationError);
}

// Two axes in another order on two ranks: each call alone is right, so only time tells.
TEST(InProcess, OtherOrderOfAxesEndsAfterTheTimeout) {
  auto body = [](Communicator& world) {
    auto a = world.split("a", std::vector<int64_t>{0, 1}), b = world.split("b", std::vector<int64_t>{0, 1});
    (world.rank() == 0 ? a : b)->barrier();
    (world.rank() == 0 ? b : a)->barrier();
  };
  try {
    run_ranks(2, body, {.timeout_seconds = 0.2});
    FAIL() << "nothing was thrown";
  } catch (const CommunicationError& error) {
    EXPECT_NE(std::string(error.what()).find("has waited 0.2 s in barrier for rank"), std::string::npos)
        << error.what();
  }
}

TEST(InProcess, NamesAxisAndRanksOfTheWorldInAGroup) {
  auto body = [](Communicator& world) {
    auto odd = world.split("tensor", world.rank() % 2 == 0 ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{1, 3});
    float x = 0;
    if (world.rank() == 1) odd->send(&x, 1, DType::kF32, 1);
    if (world.rank() == 3) odd->barrier();
  };
  try {
    run_ranks(4, body);
    FAIL() << "nothing was thrown";
  } catch (const CommunicationError& error) {
    for (const char* piece : {"[tensor]", "barrier on rank 3", "on rank 1"})
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tokamak::test
