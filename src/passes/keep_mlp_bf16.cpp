#include "passes/keep_mlp_bf16.h"

#include "graph/rewriter.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

bool is_of_gelu(const Graph& graph, ValueId value) {
  int n = graph.producer(value);
  if (n < 0) return false;
  const Node& maker = graph.nodes()[size_t(n)];
  if (maker.op == &op::reshape) return is_of_gelu(graph, maker.inputs[0]);
  return maker.op == &op::gelu || maker.op == &op::gelu_grad;
}

bool is_kept(const Graph& graph, const Node& node) {
  return node.op == &op::matmul && node.inputs.size() == 2 && graph.dtype(node.outputs[0]) == DType::kBF16 &&
         std::ranges::any_of(node.inputs, [&](ValueId input) { return is_of_gelu(graph, input); });
}

}  // namespace

bool keep_mlp_bf16(Graph& graph, const PassContext&) {
  bool changed = false;
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    Node copy = node;
    if (is_kept(graph, node) && !node.attrs.find("result")) {
      copy.attrs.set("result", std::string(dtype_name(DType::kBF16)));
      changed = true;
    }
    rewriter.copy(copy);
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
