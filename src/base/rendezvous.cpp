#include "base/rendezvous.h"

namespace tokamak {

Rendezvous::Rendezvous(const RankPlace& place) {
  if (place.rank == 0) own_server_ = std::make_unique<StoreServer>(place.host, place.port, place.world, place.token);
  server_ = own_server_.get();
  join(place);
}

Rendezvous::Rendezvous(const RankPlace& place, StoreServer& served) : server_(&served) { join(place); }

void Rendezvous::join(const RankPlace& place) {
  client_ = std::make_unique<StoreClient>(StoreClient::Options{.host = place.host,
                                                               .port = server_ ? server_->port() : place.port,
                                                               .rank = place.rank,
                                                               .world = place.world,
                                                               .token = place.token,
                                                               .join_seconds = place.join_seconds});
  client_->exchange("start", place.rank, place.world, "", place.join_seconds);
}

}  // namespace tokamak
