// What ranks have put into the store of a run (base/store_server.h), and who waits for what is not there yet. It knows
// no sockets and belongs to one thread. Tests: tests/base/store_test.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/frames.h"
#include "base/socket.h"

namespace tokamak {

/// A request that cannot be answered yet.
struct StoreWaiter {
  int64_t connection;
  int rank;
  std::string id;
  Deadline deadline;
  bool take = false;
};

class StoreValues {
 public:
  /// `reply` takes what answers a request: one value, or those of an exchange.
  using Reply = std::function<void(const StoreWaiter&, const Frame& values)>;
  explicit StoreValues(Reply reply) : reply_(std::move(reply)) {}

  void set(const std::string& key, const std::string& value);
  void get(const std::string& key, const StoreWaiter& waiter);
  /// What is wrong with it, for all ranks; empty: nothing.
  std::string exchange(const std::string& key, int index, int size, const std::string& value,
                       const StoreWaiter& waiter);

  /// The first wait that is over, as an error for all ranks; empty: none is.
  std::string overdue() const;
  /// Milliseconds until a wait is over, at most `most`.
  int next_wake(int most) const;
  /// Nobody waits any more.
  void forget_waits();

 private:
  struct Exchange {
    std::vector<std::optional<std::string>> values;
    std::vector<StoreWaiter> waiters;
  };
  static std::string missing(const Exchange& exchange);

  Reply reply_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<StoreWaiter>> key_waiters_;
  std::map<std::string, Exchange> exchanges_;
};

}  // namespace tokamak
