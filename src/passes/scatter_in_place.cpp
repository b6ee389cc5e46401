#include "passes/scatter_in_place.h"

#include "graph/rewriter.h"
#include "ops/embedding.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

// The operand of `add` that is a two-input embedding_grad which nothing else reads: 0, 1, or -1.
int scattered_operand(const Graph& graph, const Node& add, const Users& users, const std::vector<bool>& escaping) {
  if (add.op != &op::add || graph.type(add.inputs[0]) != graph.type(add.inputs[1])) return -1;
  for (int i : {0, 1}) {
    ValueId value = add.inputs[size_t(i)];
    if (graph.producer(value) < 0 || users[size_t(value)].size() != 1 || escaping[size_t(value)]) continue;
    const Node& maker = graph.nodes()[size_t(graph.producer(value))];
    if (maker.op == &op::embedding_grad && maker.inputs.size() == 2 && add.inputs[0] != add.inputs[1]) return i;
  }
  return -1;
}

}  // namespace

bool scatter_in_place(Graph& graph, const PassContext&) {
  auto users = find_users(graph);
  auto escaping = find_escaping(graph);
  std::vector<bool> replaced(graph.nodes().size(), false);
  std::vector<int> operand;
  for (const Node& node : graph.nodes()) {
    operand.push_back(scattered_operand(graph, node, users, escaping));
    if (operand.back() >= 0) replaced[size_t(graph.producer(node.inputs[size_t(operand.back())]))] = true;
  }
  if (std::find(replaced.begin(), replaced.end(), true) == replaced.end()) return false;
  Rewriter rewriter(graph);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (replaced[n]) continue;
    if (operand[n] < 0) {
      rewriter.copy(node);
      continue;
    }
    const Node& scatter = graph.nodes()[size_t(graph.producer(node.inputs[size_t(operand[n])]))];
    ValueIds inputs = rewriter.map(scatter.inputs);
    inputs.push_back(rewriter.map(node.inputs[size_t(1 - operand[n])]));
    rewriter.replace(node.outputs, rewriter.in_place_of(node).add(op::embedding_grad, inputs, scatter.attrs));
  }
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
