#include "base/rendezvous.h"

namespace tokamak {

Rendezvous::Rendezvous(const RankPlace& place, double timeout_seconds, const std::function<void(int port)>& serving) {
  int port = place.port;
  if (place.rank == 0) {
    server_ = std::make_unique<StoreServer>(place.host, place.port, place.world, place.token);
    port = server_->port();
    if (serving) serving(port);
  }
  client_ = std::make_unique<StoreClient>(StoreClient::Options{.host = place.host,
                                                               .port = port,
                                                               .rank = place.rank,
                                                               .world = place.world,
                                                               .token = place.token,
                                                               .timeout_seconds = timeout_seconds});
  client_->exchange("start", place.rank, place.world, "");
}

}  // namespace tokamak
