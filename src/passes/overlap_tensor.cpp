#include "passes/overlap_tensor.h"

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/flop_rate.h"
#include "passes/gathered_parameters.h"
#include "passes/weight_products.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace tokamak {
namespace {

// Decides an order by what is computed and sent until a node can run: arithmetic alone, and links.
class Order {
 public:
  Order(const Graph& graph, const PassContext& context)
      : graph_(graph), target_(context.target), products_(find_weight_products(graph)),
        of_product_(graph.nodes().size(), false), gathers_(count_gathers(graph)),
        there_(size_t(graph.num_values()), 0) {
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
      if (computes(n)) fill_until(ready_at(n));
      take(n);
      if (is_gathering(n)) take_sends();
    }
    take_all();
    return std::move(order_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  // And waits for what it reads; a view of it does not.
  bool computes(int n) const { return node(n).op->fusion != Fusion::kView && !node(n).op->together; }

  void wait(int product) {
    late_.push_back(product);
    if (late_.size() > kMostWaitingProducts) take_late(0);
  }

  void fill_until(double ready) {
    double least = std::max(0.0, kLeastShareOfWait * (ready - computed_));
    while (ready - computed_ > least && !late_.empty()) {
      std::vector<double> seconds;
      for (int product : late_) seconds.push_back(seconds_of(product));
      take_late(choose_product(seconds, ready - computed_));
    }
  }

  double seconds_of(int n) const { return node_cost(graph_, node(n)).flops / flop_rate(graph_, node(n), target_); }

  void take_late(size_t which) {
    int product = late_[which];
    late_.erase(late_.begin() + long(which));
    const std::vector<int>& nodes = products_[size_t(product)];
    auto sent = std::find_if(nodes.begin(), nodes.end(), [&](int n) { return node(n).op->together; });
    std::for_each(nodes.begin(), sent, [&](int n) { take(n); });
    if (sent == nodes.end()) return;
    if (sends_.size() == kMostUnsentGradients) take_sends();
    sends_.emplace_back(sent, nodes.end());
  }

  void take_all() {
    while (!late_.empty()) take_late(0);
    take_sends();
  }

  // Gradients go to other ranks behind a gathering of the stream, of which much comes, not in front of one.
  bool is_gathering(int n) const { return node(n).op == &op::all_gather && !gathers_[size_t(node(n).outputs[0])]; }
  void take_sends() {
    for (const std::vector<int>& nodes : std::exchange(sends_, {}))
      for (int n : nodes) take(n);
  }

  // When what it reads has been sent.
  double ready_at(int n) const {
    double seconds = 0;
    for (ValueId input : node(n).inputs) seconds = std::max(seconds, there_[size_t(input)]);
    return seconds;
  }

  void take(int n) {
    order_.push_back(n);
    const Node& next = node(n);
    double there = next.op->fusion == Fusion::kView ? ready_at(n) : 0;
    if (computes(n))
      computed_ = std::max(computed_, ready_at(n)) + seconds_of(n);
    else if (next.op->together && !gathers_[size_t(next.outputs[0])])  // parameters come ahead: bucket
      there = sent_ = std::max(sent_, computed_) +
                      node_cost(graph_, next).link_bytes / target_.link(next.attrs.get_string("axis")).bandwidth;
    for (ValueId output : next.outputs) there_[size_t(output)] = there;
  }

  const Graph& graph_;
  const Target& target_;
  std::vector<std::vector<int>> products_;
  std::vector<bool> of_product_;             // by node
  std::vector<std::optional<int>> gathers_;  // by value: see count_gathers
  std::vector<double> there_;                // by value: when it has been sent, if it is
  std::deque<int> late_;                     // products that wait
  std::vector<std::vector<int>> sends_;      // what becomes of products that do not, from their collectives on
  std::vector<int> order_;
  double computed_ = 0, sent_ = 0;  // seconds, of what is in order_
};

}  // namespace

size_t choose_product(std::span<const double> seconds, double rest) {
  auto is_better = [&](double x, double y) {
    return (x >= rest) == (y >= rest) ? (x >= rest ? x < y : x > y) : x >= rest;
  };
  return size_t(std::min_element(seconds.begin(), seconds.end(), is_better) - seconds.begin());
}

bool overlap_tensor(Graph& graph, const PassContext& context) {
  std::vector<int> order = Order(graph, context).run();
  if (std::is_sorted(order.begin(), order.end())) return false;
  Rewriter rewriter(graph);
  for (int n : order) rewriter.copy(graph.nodes()[size_t(n)]);
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
