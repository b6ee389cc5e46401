#include "passes/overlap_last.h"

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "passes/weight_products.h"

#include <algorithm>

namespace tokamak {
namespace {

class Order {
 public:
  Order(const Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), users_(find_users(graph)), waits_(graph.nodes().size(), false),
        last_(find_last()) {
    if (last_ >= 0) choose();
  }

  bool changes() const { return std::find(waits_.begin(), waits_.end(), true) != waits_.end(); }

  /// The same nodes.
  Graph run() {
    Rewriter rewriter(graph_);
    for (int n = 0; n < num_nodes(); ++n)
      if (n > last_ || !waits_[size_t(n)]) {
        rewriter.copy(node(n));
        for (int late = 0; n == last_ && late < n; ++late)
          if (waits_[size_t(late)]) rewriter.copy(node(late));
      }
    return rewriter.finish();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  int num_nodes() const { return int(graph_.nodes().size()); }
  bool is_backward(int n) const { return node(n).phase == Phase::kBackward; }
  bool adds(int n) const { return node(n).op == &op::all_reduce || node(n).op == &op::reduce_scatter; }

  // The last gradient of the backward pass, if it is larger than a bucket; -1: there is none.
  int find_last() const {
    for (int n = num_nodes() - 1; n >= 0; --n)
      if (is_backward(n) && adds(n) && num_bytes(graph_.type(node(n).inputs[0])) > context_.bucket_mib << 20)
        return is_read_late(n) ? n : -1;
    return -1;
  }
  bool is_read_late(int n) const {
    const std::vector<int>& readers = users_[size_t(node(n).outputs[0])];
    return std::none_of(readers.begin(), readers.end(), [&](int reader) { return is_backward(reader); });
  }

  // The last products first, with what becomes of them, until they take as long as what is sent. What they give is sent
  // behind it: where that takes longer than they do, as between nodes, nothing is gained.
  void choose() {
    std::vector<bool> needed = makers_of(last_);
    double seconds = link_seconds(last_);
    std::vector<std::vector<int>> products = find_weight_products(graph_);
    for (int n = last_ - 1; n >= 0 && seconds > 0; --n) {
      const std::vector<int>& with = products[size_t(n)];
      if (with.empty() || with.back() > last_ || needed[size_t(n)]) continue;
      double computed = node_cost(graph_, node(n)).flops / flops_of(node(n)), sent = 0;
      for (int follower : with) sent += link_seconds(follower);
      if (sent >= computed) continue;
      for (int follower : with) waits_[size_t(follower)] = true;
      seconds -= computed;
    }
  }

  double link_seconds(int n) const {
    if (!node(n).op->together) return 0;
    return node_cost(graph_, node(n)).link_bytes / context_.target.link(node(n).attrs.get_string("axis")).bandwidth;
  }
  double flops_of(const Node& product) const {
    const Target& target = context_.target;
    return graph_.dtype(product.inputs[0]) == DType::kF32 ? target.f32_flops : target.bf16_flops;
  }

  // By node: whether the one of that number cannot be without it.
  std::vector<bool> makers_of(int last) const {
    std::vector<bool> needed(graph_.nodes().size(), false);
    needed[size_t(last)] = true;
    for (int n = last; n >= 0; --n)
      for (ValueId input : node(n).inputs)
        if (int maker = graph_.producer(input); needed[size_t(n)] && maker >= 0) needed[size_t(maker)] = true;
    return needed;
  }

  const Graph& graph_;
  const PassContext& context_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> waits_;  // by node: for the last one
  int last_;
};

}  // namespace

bool overlap_last(Graph& graph, const PassContext& context) {
  Order order(graph, context);
  if (!order.changes()) return false;
  graph = order.run();
  return true;
}

}  // namespace tokamak
