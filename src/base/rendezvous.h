// Where the ranks of a run meet: rank 0 serves the store, all join it. Tests: tests/base/store_test.cpp.
#pragma once

#include "base/rank_place.h"
#include "base/store_client.h"
#include "base/store_server.h"

#include <functional>

namespace tokamak {

class Rendezvous {
 public:
  /// Returns when all ranks have joined. UserError or CommunicationError, on all ranks that have come, when they have
  /// not within the timeout, or do not belong together. `serving`: called on rank 0 when the others can join, with the
  /// port, which is any that is free where the place has 0.
  explicit Rendezvous(const RankPlace& place, double timeout_seconds = 300,
                      const std::function<void(int port)>& serving = {});

  StoreClient& store() { return *client_; }
  /// This machine's address, as ranks of other machines reach it.
  std::string address() const { return server_ ? server_->address() : client_->address(); }

 private:
  std::unique_ptr<StoreServer> server_;  // outlives rank 0's client
  std::unique_ptr<StoreClient> client_;
};

}  // namespace tokamak
