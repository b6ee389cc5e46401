// Which launches of a plan run as a chain (backend/chained.h), and where the values lie that they hand over. A chain is
// cut into pieces, whose first kernel waits for all before it: so no more than a piece runs at a time, and that kernel
// can make empty, for the next run, what the piece before was the last to read. Tests: tests/exec/chain_test.cpp
#pragma once

#include "backend/chained.h"
#include "plan/plan.h"

#include <functional>
#include <map>
#include <optional>

namespace tokamak {

struct Chain {
  struct Link {
    std::vector<bool> awaited;  // of the node's inputs
    /// In the chain's memory, what the kernel makes empty.
    int64_t emptied = 0, emptied_bytes = 0;
  };
  int first = 0;                      // index of the first launch; the others follow it
  std::vector<Link> links;            // by launch
  std::map<ValueId, int64_t> places;  // in the chain's memory: of what the launches make, and of views of that
  int64_t bytes = 0;

  const Link* link(size_t launch) const;
};

/// The longest run of launches whose nodes `can_chain`, of a plan on one stream. None where it is short, or where what
/// its first piece makes is read in its last, or where a launch changes a state that another one reads.
std::optional<Chain> find_chain(const Plan& plan, const std::function<bool(const Node&)>& can_chain);

}  // namespace tokamak
