// A TCP port for a program that a test starts, or that nobody is to listen on.
#pragma once

#include "base/error.h"
#include "base/socket.h"

#include <random>

namespace tokamak::test {

/// Nobody listens on it now. It is below those that systems give away by themselves: else another process might be
/// given it meanwhile, or a connection to it, tried again and again, be given it for its own end and meet itself.
inline int free_port() {
  std::random_device random;
  for (int tries = 0;; ++tries) {
    int port = 10'000 + int(random() % 20'000);
    try {
      return port_of(listen_on("127.0.0.1", port).get());
    } catch (const UserError&) {
      if (tries == 100) throw;
    }
  }
}

}  // namespace tokamak::test
