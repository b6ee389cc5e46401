#include "backend/cuda/classifier_parts.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/pointwise.h"

namespace tokamak::cuda {
namespace {

Graph product(const ValueType& a, const ValueType& b, bool trans_a, bool trans_b) {
  Graph graph("part");
  GraphBuilder g(graph);
  ValueId left = g.input("a", a), right = g.input("b", b);
  matmul(g, left, right, trans_a, trans_b);
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
          x.dtype};
}

Graph classifier_logits(const ClassifierSizes& s, int64_t rows) {
  return product(x_of(s, rows), weight_of(s), false, true);
}

Graph classifier_dx(const ClassifierSizes& s, int64_t rows) {
  return product(logits_of(s, rows), weight_of(s), false, false);
}

Graph classifier_dweight(const ClassifierSizes& s, int64_t rows, bool adds) {
  ValueType dlogits = logits_of(s, rows), x = x_of(s, rows), dweight{DType::kF32, {s.vocab, s.width}};
  std::vector<ValueType> types{dlogits, x};
  if (adds) types.push_back(dweight);
  MatmulForm form;
  form.trans_a = true;
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
