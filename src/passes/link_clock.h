// Time as passes see it that decide an order of nodes: arithmetic one node after the other, and messages between ranks
// one after the other beside it, at the target's rates. What neither computes nor sends takes no time.
// Tests: tests/passes/link_clock_test.cpp.
#pragma once

#include "passes/pass.h"

#include <optional>
#include <vector>

namespace tokamak {

class LinkClock {
 public:
  LinkClock(const Graph& graph, const PassContext& context);

  /// Whether node n waits for what it reads; a view of it does not.
  bool computes(int n) const;
  /// Whether it gathers something else than a parameter.
  bool is_gathering(int n) const;
  double seconds_of(int n) const;
  /// When what it reads has been sent.
  double ready_at(int n) const;
  /// When all that computes and was taken is done.
  double now() const { return computed_; }
  /// The next node.
  void take(int n);
  /// All nodes that were taken.
  std::vector<int> order() && { return std::move(order_); }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  const Graph& graph_;
  const Target& target_;
  std::vector<std::optional<int>> gathers_;  // by value: see count_gathers
  std::vector<double> there_;                // by value: when it has been sent, if it is
  std::vector<int> order_;
  double computed_ = 0, sent_ = 0;
};

/// The graph's nodes in this order; whether it is another one.
bool reorder(Graph& graph, const std::vector<int>& order);

}  // namespace tokamak
