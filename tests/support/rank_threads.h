// Ranks as threads of the test, with the store in which they find each other.
#pragma once

#include "base/rendezvous.h"

#include <functional>
#include <future>
#include <vector>

namespace tokamak::test {

/// Runs body(rank) on as many threads; throws what one of them has thrown.
inline void on_threads(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::future<void>> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.push_back(std::async(std::launch::async, [&, rank] { body(rank); }));
  for (std::future<void>& thread : threads) thread.get();
}

/// The same, each with a client of one store.
inline void with_stores(int ranks, const std::function<void(StoreClient& store)>& body) {
  StoreServer server("127.0.0.1", 0, ranks, "t");
  on_threads(ranks, [&](int rank) {
    StoreClient store({.host = "127.0.0.1", .port = server.port(), .rank = rank, .world = ranks, .token = "t"});
    body(store);
  });
}

}  // namespace tokamak::test
