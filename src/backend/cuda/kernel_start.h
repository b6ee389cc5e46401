// How a kernel of generation begins, beside those that run before it.
#pragma once

#include "backend/chained.h"

namespace tokamak::cuda {

struct KernelStart {
  bool early = false;               // it reads what was there before while the kernel before it runs
  const ChainLink* link = nullptr;  // null: it waits for the kernels before it

  bool awaits() const { return link && !link->waits_for_kernels(); }
};

/// The value whose bytes this one shows; itself, if it is no view.
ValueId behind_all_views(const Graph& graph, ValueId value);

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
