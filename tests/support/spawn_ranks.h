// Ranks as processes: a test starts its own program again, once for each rank, with the environment of torchrun.
#pragma once

#include "base/file.h"
#include "base/rank_place.h"
#include "tests/support/free_port.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tokamak::test {

/// Runs `body` as the current test in `ranks` new processes; returns their statuses, as waitpid gives them. What a rank
/// with another status than 0 has said is shown.
inline std::vector<int> spawn_ranks(int ranks, const std::function<void(const RankPlace& place)>& body) {
  if (std::getenv("TOKAMAK_TEST_IS_RANK")) {
    body(*rank_place([](const char* name) { return static_cast<const char*>(std::getenv(name)); }));
    return std::vector<int>(size_t(ranks), 0);
  }
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
  int port = free_port();
  std::vector<pid_t> processes;
  std::vector<std::string> logs;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> texts = {"TOKAMAK_TEST_IS_RANK=1",
                                      "OMP_WAIT_POLICY=passive",
                                      "MASTER_ADDR=127.0.0.1",
                                      "TOKAMAK_TOKEN=test",
                                      "RANK=" + std::to_string(rank),
                                      "LOCAL_RANK=" + std::to_string(rank),
                                      "WORLD_SIZE=" + std::to_string(ranks),
                                      "MASTER_PORT=" + std::to_string(port)};
    std::vector<char*> environment;
    for (char** old = environ; *old; ++old) environment.push_back(*old);
    for (std::string& text : texts) environment.insert(environment.begin(), text.data());  // the first of a name counts
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe", brief = "--gtest_brief=1";
    char* arguments[] = {program.data(), filter.data(), brief.data(), nullptr};
    logs.push_back((std::filesystem::temp_directory_path() /
                    ("tokamak_rank_" + std::to_string(::getpid()) + "_" + std::to_string(rank)))
                       .string());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, logs.back().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t process = -1;
    int status = posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(status, 0);
    processes.push_back(process);
  }
  std::vector<int> statuses;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = -1;
    ::waitpid(processes[size_t(rank)], &status, 0);
    statuses.push_back(status);
    if (status != 0) std::fprintf(stderr, "rank %d:\n%s\n", rank, read_file(logs[size_t(rank)]).c_str());
    std::filesystem::remove(logs[size_t(rank)]);
  }
  return statuses;
}

}  // namespace tokamak::test
