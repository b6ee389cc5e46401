#include "backend/cuda/kernel_start.h"

#include "graph/op_def.h"

namespace tokamak::cuda {

ValueId behind_all_views(const Graph& graph, ValueId value) {
  for (int maker = graph.producer(value); maker >= 0; maker = graph.producer(value)) {
    const Node& node = graph.nodes()[size_t(maker)];
    if (node.op->fusion != Fusion::kView) break;
    value = node.inputs[0];
  }
  return value;
}

}  // namespace tokamak::cuda
