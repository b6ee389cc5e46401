// A communicator that sends nothing and waits for nobody: a step takes with it what it would take if communication cost
// nothing. What comes of such a step means nothing. Tests:
// tests/backend/ranks/silent_communicator_test.cpp.
#pragma once

#include "backend/communicator.h"

namespace tokamak {

/// A world in the place of `world`. Operations leave memory as it is; each rank hears its own words from all.
std::unique_ptr<Communicator> make_silent(const Communicator& world);

}  // namespace tokamak
