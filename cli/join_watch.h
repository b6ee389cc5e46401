// Ranks, or machines, that wait for each other to come, which may take minutes and whose user should know for whom.
#pragma once

#include <thread>

#include "base/rank_place.h"
#include "base/store_server.h"

namespace tokamak {

/// While it lives it says after some seconds, and again and again, that this rank waits. A request to stop ends the
/// process, as nothing has begun yet.
class JoinWatch {
 public:
  /// Who is waited for, and what says for how long.
  struct Words {
    const char *who, *limit;
  };
  static constexpr Words kRanks{"ranks", "TOKAMAK_JOIN_SECONDS"},
      kMachines{"machines", "TOKAMAK_JOIN_SECONDS, later --agents.wait_seconds"};

  /// `store`: where this rank serves it, and so knows who has not come; else null. It outlives this.
  JoinWatch(const RankPlace& place, const StoreServer* store, const Words& words = kRanks);

 private:
  std::jthread thread_;
};

}  // namespace tokamak
