#include "passes/autocast.h"

#include "graph/rewriter.h"
#include "ops/ops.h"

#include <algorithm>

namespace tokamak {
namespace {

class Caster {
 public:
  explicit Caster(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes()) convert(node);
    for (const Result& result : graph_.results()) restore(result.value);
    for (const Update& update : graph_.updates()) restore(update.value);
    return rewriter_.finish();
  }

 private:
  GraphBuilder& builder() { return rewriter_.builder(); }

  // The value in this type; every value is cast at most once to each.
  ValueId as(ValueId value, DType dtype) {
    DType from = builder().type(value).dtype;
    if (!is_float(from) || from == dtype) return value;
    auto [at, fresh] = casts_.try_emplace({value, dtype}, kNoValue);
    if (fresh) at->second = cast(builder(), value, dtype);
    return at->second;
  }

  void convert(const Node& node) {
    std::vector<ValueId> inputs = rewriter_.map(node.inputs);
    builder().set_tags(node.tags);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = as(inputs[i], wanted(node, inputs, i));
    if (node.op == &op::cast && builder().type(inputs[0]).dtype == graph_.dtype(node.outputs[0]))
      rewriter_.replace(node.outputs, {inputs[0]});
    else
      rewriter_.replace(node.outputs, builder().add(*node.op, inputs, node.attrs, node.body));
    builder().set_tags({});
  }

  DType wanted(const Node& node, const std::vector<ValueId>& inputs, size_t i) {
    const ValueType& own = builder().type(inputs[i]);
    switch (node.op->autocast) {
      case Autocast::kAny: return own.dtype;
      case Autocast::kFull: return own.dtype == DType::kBF16 ? DType::kF32 : own.dtype;
      case Autocast::kLow: return (node.op->low_inputs >> i & 1) && own.dtype == DType::kF32 ? DType::kBF16 : own.dtype;
      case Autocast::kFollow: break;
    }
    const Shape& shape = graph_.shape(node.outputs[0]);
    bool pointwise = node.op->fusion == Fusion::kPointwise, vector = own.shape.size() == 1 && own.shape != shape;
    if (!is_float(own.dtype) || (pointwise && !vector)) return own.dtype;  // pointwise ops mix types by themselves
    // A vector takes the type of the full-size operands, others the widest type: ops like concat want one for all.
    DType widest = pointwise ? own.dtype : DType::kBF16;
    for (ValueId input : inputs) {
      const ValueType& type = builder().type(input);
      if (pointwise && type.shape == shape) return type.dtype;
      if (!pointwise && is_float(type.dtype) && type.dtype != DType::kBF16) widest = type.dtype;
    }
    return widest;
  }

  void restore(ValueId value) { rewriter_.replace(value, as(rewriter_.map(value), graph_.dtype(value))); }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

}  // namespace

bool autocast(Graph& graph, const PassContext&) {
  auto is_low = [&](const Node& node) {
    return node.op->autocast == Autocast::kLow && graph.dtype(node.inputs[0]) == DType::kF32;
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_low)) return false;
  graph = Caster(graph).run();
  return true;
}

}  // namespace tokamak
