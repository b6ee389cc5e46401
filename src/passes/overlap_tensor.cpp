#include "passes/overlap_tensor.h"

#include "graph/op_def.h"
#include "passes/link_clock.h"
#include "passes/weight_products.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace tokamak {
namespace {

// Decides an order by what is computed and sent until a node can run.
class Order {
 public:
  Order(const Graph& graph, const PassContext& context)
      : graph_(graph), products_(find_weight_products(graph)), of_product_(graph.nodes().size(), false),
        clock_(graph, context) {
    for (const std::vector<int>& product : products_)
      for (int n : product) of_product_[size_t(n)] = true;
  }

  /// All nodes.
  std::vector<int> run() {
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      if (!products_[size_t(n)].empty()) {
        wait(n);
        continue;
      }
      if (of_product_[size_t(n)]) continue;
      if (node(n).phase == Phase::kUpdate) take_all();
      if (clock_.computes(n)) fill_until(clock_.ready_at(n));
      clock_.take(n);
      if (clock_.is_gathering(n)) take_sends();
    }
    take_all();
    return std::move(clock_).order();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  void wait(int product) {
    late_.push_back(product);
    if (late_.size() > kMostWaitingProducts) take_late(0);
  }

  void fill_until(double ready) {
    double least = std::max(0.0, kLeastShareOfWait * (ready - clock_.now()));
    while (ready - clock_.now() > least && !late_.empty()) {
      std::vector<double> seconds;
      for (int product : late_) seconds.push_back(clock_.seconds_of(product));
      take_late(choose_product(seconds, ready - clock_.now()));
    }
  }

  void take_late(size_t which) {
    int product = late_[which];
    late_.erase(late_.begin() + long(which));
    const std::vector<int>& nodes = products_[size_t(product)];
    auto sent = std::find_if(nodes.begin(), nodes.end(), [&](int n) { return node(n).op->together; });
    std::for_each(nodes.begin(), sent, [&](int n) { clock_.take(n); });
    if (sent == nodes.end()) return;
    if (sends_.size() == kMostUnsentGradients) take_sends();
    sends_.emplace_back(sent, nodes.end());
  }

  void take_all() {
    while (!late_.empty()) take_late(0);
    take_sends();
  }

  // Gradients go to other ranks behind a gathering of the stream, of which much comes, not in front of one.
  void take_sends() {
    for (const std::vector<int>& nodes : std::exchange(sends_, {}))
      for (int n : nodes) clock_.take(n);
  }

  const Graph& graph_;
  std::vector<std::vector<int>> products_;
  std::vector<bool> of_product_;         // by node
  std::deque<int> late_;                 // products that wait
  std::vector<std::vector<int>> sends_;  // what becomes of products that do not, from their collectives on
  LinkClock clock_;
};

}  // namespace

size_t choose_product(std::span<const double> seconds, double rest) {
  auto is_better = [&](double x, double y) {
    return (x >= rest) == (y >= rest) ? (x >= rest ? x < y : x > y) : x >= rest;
  };
  return size_t(std::min_element(seconds.begin(), seconds.end(), is_better) - seconds.begin());
}

bool overlap_tensor(Graph& graph, const PassContext& context) { return reorder(graph, Order(graph, context).run()); }

}  // namespace tokamak
