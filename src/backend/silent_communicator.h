// A communicator that sends nothing and waits for nobody: a step takes with it what it would take if communication cost
// nothing. What comes of such a step means nothing, but is made of numbers of the right kind: what others would send is
// the rank's own, since multiplying zeros takes less power, and so less time. Tests:
// tests/backend/ranks/silent_communicator_test.cpp.
#pragma once

#include "backend/backend.h"
#include "backend/communicator.h"

namespace tokamak {

/// A world in the place of `world`, for operands in the memory of `backend`, which must outlive it. Each rank hears its
/// own words from all; only what would be received from one other rank stays as it was.
std::unique_ptr<Communicator> make_silent(const Communicator& world, Backend& backend);

}  // namespace tokamak
