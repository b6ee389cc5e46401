// Connections between the processes of a run. Ranks of one machine use Unix sockets, so no port is open for them; ranks
// of several a TCP port each, which is open until all have come. Either way both ends prove that they know the run's
// token and what was said in its store, and whoever does not is turned away. What is sent is not encrypted. Tests:
// tests/backend/ranks/process_links_test.cpp.
#pragma once

#include "backend/communicator.h"
#include "base/file.h"
#include "base/socket.h"

#include <string>
#include <vector>

namespace tokamak {

class StoreClient;

struct LinkOptions {
  std::string key;       // of these connections alone, the same on all their ranks
  std::string address;   // of this machine, as others reach it
  double seconds = 60;   // until all have come
  bool one_host = true;  // whether ranks of one machine use Unix sockets
};

/// A connection to each of the members, by their ranks there; none to itself. All members call it. CommunicationError
/// when they have not come in time, or the run has failed.
std::vector<FileDescriptor> link_processes(StoreClient& store, const Membership& members, const LinkOptions& options);

}  // namespace tokamak
