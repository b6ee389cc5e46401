// What every communicator must do, whatever ranks are and wherever their memory is: each case is called by all ranks of
// a world, compares with plain loops on the host, and records failures with EXPECT.
#pragma once

#include "backend/backend.h"
#include "backend/communicator.h"

#include <functional>
#include <span>

namespace tokamak::test {

/// One rank of the world, with the memory that its communicator works on.
struct SuiteRank {
  Communicator& world;
  Backend& backend;
  Queue queue = nullptr;
};

struct SuiteCase {
  const char* name;
  void (*run)(const SuiteRank& rank);
};

std::span<const SuiteCase> communicator_suite();

/// Cases in which ranks do not agree, or one of them fails: every rank's call must throw a CommunicationError whose
/// message has `expected`. At least 2 ranks; the world is of no more use afterwards.
struct WrongCase {
  const char* name;
  void (*call)(const SuiteRank& rank);
  std::vector<std::string> expected;

  void run(const SuiteRank& rank) const {
    call(rank);
    rank.world.check();
  }
};

std::span<const WrongCase> wrong_cases();

/// Checks what `run` throws, in which a rank makes its communicator, where that takes the others too, and runs the
/// case.
void expect_communication_error(const WrongCase& wrong, const std::function<void()>& run);

}  // namespace tokamak::test
