#include "passes/overlap_context.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/context_attention.h"
#include "passes/weight_products.h"

#include <algorithm>

namespace tokamak {
namespace {

class Order {
 public:
  explicit Order(const Graph& graph) : graph_(graph), users_(find_users(graph)), waits_(graph.nodes().size(), false) {
    for (int n = 0; n < num_nodes(); ++n)
      if (node(n).op == &op::context_attention_grad) add_layer(n);
    for (const std::vector<int>& product : find_weight_products(graph))
      for (int n : product) waits_[size_t(n)] = true;
  }

  bool changes() const { return !layers_.empty(); }

  /// The same nodes.
  Graph run() {
    Rewriter rewriter(graph_);
    std::vector<int> late;
    size_t layer = 0;
    for (int n = 0; n < num_nodes(); ++n) {
      if (layer < layers_.size() && waits_[size_t(n)]) {
        late.push_back(n);
        continue;
      }
      if (is_ahead(n)) continue;
      rewriter.copy(node(n));
      if (layer == layers_.size() || n != layers_[layer].scatter) continue;
      if (++layer < layers_.size() && layers_[layer].gather >= 0) rewriter.copy(node(layers_[layer].gather));
      for (int other : late) rewriter.copy(node(other));
      late.clear();
    }
    return rewriter.finish();
  }

 private:
  // What attention's gradient of one layer sends: nodes; gather -1: it must stand where it is.
  struct Layer {
    int scatter, gather;
  };

  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  int num_nodes() const { return int(graph_.nodes().size()); }
  bool is_backward(int n) const { return node(n).phase == Phase::kBackward; }

  void add_layer(int attention) {
    const std::vector<int>& readers = users_[size_t(node(attention).outputs[1])];
    auto scatter =
        std::find_if(readers.begin(), readers.end(), [&](int n) { return node(n).op == &op::reduce_scatter; });
    if (scatter == readers.end()) return;
    int gather = graph_.producer(node(attention).inputs[1]);
    layers_.push_back({*scatter, gather >= 0 && can_be_ahead(gather) ? gather : -1});
  }
  bool can_be_ahead(int gather) const {
    if (node(gather).op != &op::all_gather || !is_backward(gather)) return false;
    int maker = graph_.producer(node(gather).inputs[0]);
    return maker < 0 || node(maker).phase == Phase::kForward;
  }
  // Of the first layer there is nothing before which it could be.
  bool is_ahead(int n) const {
    return std::any_of(layers_.begin() + 1, layers_.end(), [&](const Layer& layer) { return layer.gather == n; });
  }

  const Graph& graph_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> waits_;    // by node: for the next layer's scatter
  std::vector<Layer> layers_;  // in order
};

}  // namespace

bool overlap_context(Graph& graph, const PassContext&) {
  Order order(graph);
  if (!order.changes()) return false;
  graph = order.run();
  return true;
}

}  // namespace tokamak
