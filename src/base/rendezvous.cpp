#include "base/rendezvous.h"

namespace tokamak {

Rendezvous::Rendezvous(const RankPlace& place, double timeout_seconds) {
  if (place.rank == 0) own_server_ = std::make_unique<StoreServer>(place.host, place.port, place.world, place.token);
  server_ = own_server_.get();
  join(place, timeout_seconds);
}

Rendezvous::Rendezvous(const RankPlace& place, StoreServer& served, double timeout_seconds) : server_(&served) {
  join(place, timeout_seconds);
}

void Rendezvous::join(const RankPlace& place, double timeout_seconds) {
  client_ = std::make_unique<StoreClient>(StoreClient::Options{.host = place.host,
                                                               .port = server_ ? server_->port() : place.port,
                                                               .rank = place.rank,
                                                               .world = place.world,
                                                               .token = place.token,
                                                               .timeout_seconds = timeout_seconds});
  client_->exchange("start", place.rank, place.world, "");
}

}  // namespace tokamak
