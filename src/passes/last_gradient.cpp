#include "passes/last_gradient.h"

#include "cost/price.h"
#include "ops/collective.h"

#include <algorithm>

namespace tokamak {
namespace {

bool of_backward(const Node& node) { return node.phase == Phase::kBackward; }

// The last sum over ranks that is larger than a bucket, unless the backward pass itself reads it; -1: there is none.
int find_last(const Graph& graph, int64_t bucket_bytes) {
  Users users(graph);
  for (int n = int(graph.nodes().size()) - 1; n >= 0; --n) {
    const Node& node = graph.nodes()[size_t(n)];
    bool adds = node.op == &op::all_reduce || node.op == &op::reduce_scatter;
    if (!of_backward(node) || !adds || num_bytes(graph.type(node.inputs[0])) <= bucket_bytes) continue;
    std::span<const int> readers = users[size_t(node.outputs[0])];
    bool is_read = std::any_of(readers.begin(), readers.end(),
                               [&](int reader) { return of_backward(graph.nodes()[size_t(reader)]); });
    return is_read ? -1 : n;
  }
  return -1;
}

// By node: whether node `last` is made of it.
std::vector<bool> find_makers(const Graph& graph, int last) {
  std::vector<bool> needed(graph.nodes().size(), false);
  needed[size_t(last)] = true;
  for (int n = last; n >= 0; --n)
    for (ValueId input : graph.nodes()[size_t(n)].inputs)
      if (int maker = graph.producer(input); needed[size_t(n)] && maker >= 0) needed[size_t(maker)] = true;
  return needed;
}

}  // namespace

LastGradient find_last_gradient(const Graph& graph, const std::vector<std::vector<int>>& products,
                                const PassContext& context) {
  LastGradient last{.behind = std::vector<bool>(graph.nodes().size(), false)};
  if (context.bucket_mib > 0) last.node = find_last(graph, context.bucket_mib << 20);
  if (last.node < 0) return last;
  auto price_of = [&](int n) { return price(graph, graph.nodes()[size_t(n)], context.target); };
  std::vector<bool> needed = find_makers(graph, last.node);
  double seconds = price_of(last.node).link;
  for (int n = last.node - 1; n >= 0 && seconds > 0; --n) {
    const std::vector<int>& with = products[size_t(n)];
    if (with.empty() || with.back() > last.node || needed[size_t(n)]) continue;
    double computed = price_of(n).arithmetic, sent = 0;
    for (int follower : with) sent += price_of(follower).link;  // in a bucket, which has one latency
    if (sent >= computed) continue;
    last.behind[size_t(n)] = true;
    seconds -= computed;
  }
  return last;
}

}  // namespace tokamak
