#include "passes/eliminate_common_subexpressions.h"

#include "graph/op_def.h"
#include "graph/rewriter.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace tokamak {
namespace {

size_t hash_of(const OpDef* op, const ValueIds& inputs) {
  size_t hash = std::hash<const void*>()(op);
  for (ValueId input : inputs) hash = hash * 1000003 + size_t(input);
  return hash;
}

}  // namespace

bool eliminate_common_subexpressions(Graph& graph, const PassContext&) {
  Rewriter rewriter(graph);
  std::unordered_multimap<size_t, const Node*> seen;  // old nodes that were copied, by op and new inputs
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    if (node.body || node.recompute || node.op->effects) {
      rewriter.copy(node);
      continue;
    }
    ValueIds inputs = rewriter.map(node.inputs);
    auto [begin, end] = seen.equal_range(hash_of(node.op, inputs));
    auto same = [&](const auto& item) {
      return item.second->op == node.op && item.second->attrs == node.attrs &&
             rewriter.map(item.second->inputs) == inputs;
    };
    auto found = std::find_if(begin, end, same);
    if (found != end) {
      rewriter.replace(node.outputs, rewriter.map(found->second->outputs));
      changed = true;
    } else {
      seen.emplace(hash_of(node.op, inputs), &node);
      rewriter.copy(node);
    }
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
