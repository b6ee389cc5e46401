// The machine that a command runs on: its backend and its measured rates, with the threads that the user asked for.
#pragma once

#include "backend/backend.h"
#include "config/config.h"

namespace tokamak {

struct Machine {
  Target target;
  std::unique_ptr<Backend> backend;
};

/// Sets the thread count, measures the rates (about half a second).
Machine open_machine(const RunConfig& config);

}  // namespace tokamak
