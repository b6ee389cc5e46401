// How fast ranks exchange tensors, measured for predictions. Tests: tests/exec/measure_links_test.cpp.
#pragma once

#include "backend/backend.h"
#include "backend/communicator.h"
#include "graph/target.h"

namespace tokamak {

/// Of one collective each, of kSmallMessage and kLargeMessage bytes.
struct LinkSeconds {
  double small_reduce = 0, large_reduce = 0, large_gather = 0;
};
inline constexpr int64_t kSmallMessage = 1 << 20, kLargeMessage = 32 << 20;

/// All ranks call it; each gets what it has measured.
LinkSeconds measure_links(Backend& backend, Communicator& ranks);

/// `target` with the bandwidth, gather_share and fixed cost of its links with which collectives between so many ranks
/// take these seconds; as it is where the large message took no longer than the small one.
Target with_links(Target target, int64_t ranks, const LinkSeconds& seconds);

}  // namespace tokamak
