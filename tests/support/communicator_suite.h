// What every communicator must do, whatever ranks are and wherever their memory is: each case is called by all ranks of
// a world, compares with plain loops on the host, and records failures with EXPECT.
#pragma once

#include "backend/backend.h"
#include "backend/communicator.h"

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
  void (*run)(const SuiteRank& rank);
  std::vector<std::string> expected;
};

std::span<const WrongCase> wrong_cases();

/// Runs the case and checks what it throws.
void expect_communication_error(const WrongCase& wrong, const SuiteRank& rank);

}  // namespace tokamak::test
