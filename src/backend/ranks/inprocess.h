// Ranks that are threads of this process, in the CPU's memory: for tests, and for trying a mesh on any machine. Every
// call is compared with those of the ranks that it meets. Tests: tests/backend/ranks.
#pragma once

#include "backend/communicator.h"

#include <functional>

namespace tokamak {

struct InProcessOptions {
  double timeout_seconds = 600;                              // that a rank waits for another one in a call
  std::vector<std::shared_ptr<RankProgress>> progress = {};  // by rank; empty: nobody looks
  /// Given, before any rank begins, what ends the calls of all ranks; it may be called as long as it is kept.
  std::function<void(std::function<void(const std::string& why)> abort)> on_start = {};
};

/// Runs body(world) on as many threads, each with its rank's communicator of all, called 'world'. When a body throws,
/// the other ranks' calls fail; what was thrown first, of errors of a rank's own if there are any, is thrown here, when
/// all threads have ended.
void run_ranks(int ranks, const std::function<void(Communicator& world)>& body, const InProcessOptions& options = {});

}  // namespace tokamak
