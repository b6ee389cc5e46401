// What a link of a chain is launched with.
#pragma once

#include "backend/chained.h"

namespace tokamak::cuda {

/// As tokamak::Emptied in kernels/chain.cuh; of a kernel that is no link, nothing.
struct Emptied {
  void* at = nullptr;
  int64_t vectors = 0;

  Emptied() = default;
  explicit Emptied(const ChainLink* link) {
    if (link) at = link->emptied, vectors = link->emptied_bytes / 16;
  }
};

}  // namespace tokamak::cuda
