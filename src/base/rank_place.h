// A process's place among the ranks of a run, as whoever started it says in the environment: torchrun (also Kubernetes'
// training operators), else mpirun, else srun. Tests: tests/base/rank_place_test.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tokamak {

struct RankPlace {
  std::string launcher;  // "torchrun", "mpirun" or "srun", for messages
  int rank = 0;
  int world = 1;
  int local_rank = 0;  // on its machine
  std::string host;    // of rank 0, where it serves the store (base/store_server.h)
  int port = 0;
  std::string token;  // what ranks know and strangers do not: TOKAMAK_TOKEN, which may be a secret, or the launcher's
                      // id of the run; empty: neither is given
  double join_seconds = 300;  // that ranks wait for each other to come: TOKAMAK_JOIN_SECONDS
  bool operator==(const RankPlace&) const = default;
};

/// `variable` returns a variable's value, or null (std::getenv). Nothing: no launcher has said anything. A UserError
/// when something is missing, is no number, or cannot be.
std::optional<RankPlace> rank_place(const std::function<const char*(const char* name)>& variable);

/// A variable that torchrun, mpirun or srun sets for the ranks that it starts, and does not have itself. Empty: none of
/// them has started this process, though it may be a rank all the same.
std::string launcher_mark(const std::function<const char*(const char* name)>& variable);

}  // namespace tokamak
