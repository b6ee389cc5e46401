#include "passes/weight_products.h"

#include "graph/op_def.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

bool is_backward(const Node& node) { return node.phase == Phase::kBackward; }

// Whether the node reads nothing but the product: one operand, and perhaps the sum of its gradients so far.
bool is_follower(const Graph& graph, const Node& node) {
  if (node.op == &op::add) return graph.argument_of(node.inputs[0]) || graph.argument_of(node.inputs[1]);
  bool is_view = node.op->fusion == Fusion::kView || node.op == &op::slice;  // of products joined, their parts
  return node.inputs.size() == 1 && (is_view || node.op == &op::cast || node.op->together);
}

// The product and the nodes that only carry its gradient on to the update. Empty: other nodes of the
// backward pass read it, too.
std::vector<int> with_followers(const Graph& graph, const Users& users, int product) {
  std::vector<int> nodes = {product};
  for (size_t i = 0; i < nodes.size(); ++i)
    for (ValueId output : graph.nodes()[size_t(nodes[i])].outputs)
      for (int reader : users[size_t(output)]) {
        const Node& node = graph.nodes()[size_t(reader)];
        if (!is_backward(node) || std::find(nodes.begin(), nodes.end(), reader) != nodes.end()) continue;
        if (!is_follower(graph, node)) return {};
        nodes.push_back(reader);
      }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

std::vector<std::vector<int>> find_weight_products(const Graph& graph) {
  std::vector<std::vector<int>> products(graph.nodes().size());
  Users users(graph);
  for (int n = 0; n < int(products.size()); ++n) {
    const Node& node = graph.nodes()[size_t(n)];
    if (node.op == &op::matmul && is_backward(node)) products[size_t(n)] = with_followers(graph, users, n);
  }
  return products;
}

}  // namespace tokamak
