// Ranks that are processes, on one machine or several, in the CPU's memory. Those of one machine are joined by Unix
// sockets, others by TCP (backend/ranks/process_links.h). Every call is compared with those of the ranks that it meets.
// Tests: tests/backend/ranks/processes_test.cpp.
#pragma once

#include "backend/communicator.h"

namespace tokamak {

class StoreClient;

struct ProcessOptions {
  std::string address;                               // of this machine, as others reach it: Rendezvous::address()
  double timeout_seconds = 600;                      // that a rank waits for another one in a call
  bool one_host = true;                              // whether ranks of one machine use Unix sockets
  std::shared_ptr<RankProgress> progress = nullptr;  // of this rank; null: nobody looks
  std::string key = "ranks";                         // of these connections alone
};

/// A communicator 'world' of all ranks that have joined the store, which must outlive it and what is split from it.
/// All ranks call it.
std::unique_ptr<Communicator> make_process_world(StoreClient& store, const ProcessOptions& options);

}  // namespace tokamak
