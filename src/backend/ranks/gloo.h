// Ranks that are processes, on one machine or several, in the CPU's memory: by Gloo, over TCP. Every call is compared
// with those of the ranks that it meets. Tests: tests/backend/ranks/gloo_test.cpp.
#pragma once

#include "backend/communicator.h"

namespace tokamak {

class StoreClient;

/// Whether this program was built with Gloo.
bool gloo_is_built();

struct GlooOptions {
  std::string address;           // of this machine, as the others reach it: Rendezvous::address()
  double timeout_seconds = 600;  // that a rank waits for another one in a call
};

/// The communicator 'world' of all ranks that have joined the store, which must outlive it and what is split from it.
/// All ranks call it. From then on the process ignores SIGPIPE. UserError where the program was built without Gloo.
std::unique_ptr<Communicator> make_gloo_world(StoreClient& store, const GlooOptions& options);

}  // namespace tokamak
