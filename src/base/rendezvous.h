// Where the ranks of a run meet: rank 0 serves the store, all join it. Tests: tests/base/store_test.cpp.
#pragma once

#include "base/rank_place.h"
#include "base/store_client.h"
#include "base/store_server.h"

#include <memory>

namespace tokamak {

class Rendezvous {
 public:
  /// Returns when all ranks have joined. UserError or CommunicationError, on all ranks that have come, when they have
  /// not within the place's join_seconds, or do not belong together.
  explicit Rendezvous(const RankPlace& place);
  /// The same on rank 0 of a store that is served already, at the place's port; it outlives this.
  Rendezvous(const RankPlace& place, StoreServer& served);

  StoreClient& store() { return *client_; }
  /// This machine's address, as ranks of other machines reach it.
  std::string address() const { return server_ ? server_->address() : client_->address(); }

 private:
  void join(const RankPlace& place);

  std::unique_ptr<StoreServer> own_server_;  // outlives rank 0's client
  StoreServer* server_ = nullptr;            // of rank 0
  std::unique_ptr<StoreClient> client_;
};

}  // namespace tokamak
