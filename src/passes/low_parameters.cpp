#include "passes/low_parameters.h"

#include "graph/rewriter.h"
#include "ops/embedding.h"
#include "ops/pointwise.h"

#include <optional>

namespace tokamak {
namespace {

class LowReaders {
 public:
  explicit LowReaders(const Graph& graph) : graph_(graph), users_(find_users(graph)), kept_(find_escaping(graph)) {
    for (const Update& update : graph.updates()) kept_[size_t(update.target)] = true;
  }

  // The one low type that every reader casts the value to, or the rows that it looks up in it; nothing when there is
  // none.
  std::optional<DType> type(ValueId value) const {
    if (kept_[size_t(value)]) return {};
    std::optional<DType> found;
    for (int reader : users_[size_t(value)]) {
      std::optional<DType> low = type_read(graph_.nodes()[size_t(reader)], value);
      if (!low || (found && *found != *low)) return {};
      found = low;
    }
    return found;
  }

 private:
  std::optional<DType> type_read(const Node& node, ValueId value) const {
    DType to = graph_.dtype(node.outputs[0]);
    if (node.op == &op::cast && (to == DType::kBF16 || to == DType::kF16)) return to;
    if (node.op == &op::embedding && node.inputs[0] == value) return type(node.outputs[0]);
    return {};
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> kept_;  // by value: it is a result, or its storage changes
};

}  // namespace

bool low_parameters(Graph& graph, const PassContext&) {
  LowReaders readers(graph);
  std::map<ValueId, ArgumentForm> types;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter)
      if (std::optional<DType> type = readers.type(argument.value))
        types[argument.value] = with_type(argument, {*type, graph.shape(argument.value)});
  if (types.empty()) return false;
  Rewriter rewriter(graph, types);
  for (const Node& node : graph.nodes())
    if (node.op == &op::cast && rewriter.graph().dtype(rewriter.map(node.inputs[0])) == graph.dtype(node.outputs[0]))
      rewriter.replace(node.outputs[0], rewriter.map(node.inputs[0]));
    else
      rewriter.copy(node);
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
