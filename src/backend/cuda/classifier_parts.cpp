#include "backend/cuda/classifier_parts.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/matmul_formats.h"
#include "ops/pointwise.h"

namespace tokamak::cuda {
namespace {

// With a's rows as they lie.
Graph product(const ClassifierSizes& s, const ValueType& a, const ValueType& b, bool trans_b) {
  Graph graph("part");
  GraphBuilder g(graph);
  Attrs attrs{{"trans_a", false}, {"trans_b", trans_b}};
  set_formats(attrs, uniform_formats(s.format));
  ValueId left = g.input("a", a), right = g.input("b", b);
  g.add1(op::matmul, {left, right}, attrs);
  return graph;
}

ValueType x_of(const ClassifierSizes& s, int64_t rows) { return {s.dtype, {rows, s.width}}; }
ValueType weight_of(const ClassifierSizes& s) { return {s.dtype, {s.vocab, s.width}}; }
ValueType logits_of(const ClassifierSizes& s, int64_t rows) { return {s.dtype, {rows, s.vocab}}; }

}  // namespace

ClassifierSizes read_classifier(const Graph& graph, const Node& node) {
  const ValueType& x = graph.type(node.inputs[0]);
  return {x.shape[0],
          x.shape[1],
          graph.shape(node.inputs[1])[0],
          node.attrs.get_int("chunk"),
          node.attrs.get_int("classes"),
          x.dtype,
          operand_format(graph, node, 0),
          softcap_of(node.attrs),
          operand_format(graph, node, node.inputs.size() > 4 ? 4 : 0)};
}

Graph classifier_logits(const ClassifierSizes& s, int64_t rows) {
  if (!s.has_own_operands()) return product(s, x_of(s, rows), weight_of(s), true);
  Graph graph("part");
  GraphBuilder g(graph);
  DType type = storage_of(s.logits);
  Attrs attrs{{"trans_a", false}, {"trans_b", true}};
  set_formats(attrs, {s.logits, s.logits, DType::kF32, s.dtype});
  ValueId x = g.input("x", {type, {rows, s.width}}), weight = g.input("w", {type, {s.vocab, s.width}});
  ValueId x_scale = g.input("x_scale", {DType::kF32, {}}), weight_scale = g.input("w_scale", {DType::kF32, {}});
  g.add1(op::matmul, {x, weight, x_scale, weight_scale}, attrs);
  return graph;
}

Graph classifier_dx(const ClassifierSizes& s, int64_t rows) {
  return product(s, logits_of(s, rows), weight_of(s), false);
}

Graph classifier_dweight(const ClassifierSizes& s, int64_t rows, bool adds) {
  ValueType dlogits = logits_of(s, rows), x = x_of(s, rows), dweight{DType::kF32, {s.vocab, s.width}};
  std::vector<ValueType> types{dlogits, x};
  if (adds) types.push_back(dweight);
  MatmulForm form;
  form.trans_a = true;
  form.formats = uniform_formats(s.format);
  form.output = DType::kF32;
  form.addend = adds ? 2 : -1;
  Graph graph("part");
  GraphBuilder g(graph);
  std::vector<ValueId> inputs;
  for (const ValueType& type : types) inputs.push_back(g.input("x" + std::to_string(inputs.size()), type));
  g.add(op::fused_matmul, inputs, {}, make_body(form, types));
  return graph;
}

}  // namespace tokamak::cuda
