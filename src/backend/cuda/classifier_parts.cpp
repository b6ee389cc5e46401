#include "backend/cuda/classifier_parts.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/matmul_formats.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

namespace tokamak::cuda {
namespace {

// Of (m, k) and of (k, n) or, transposed, (n, k); of eight bits, scales of both follow these.
Graph product(const MatmulFormats& formats, Shape a, Shape b, bool trans_b) {
  Graph graph("part");
  GraphBuilder g(graph);
  Attrs attrs{{"trans_a", false}, {"trans_b", trans_b}};
  set_formats(attrs, formats);
  ValueIds inputs{g.input("a", {storage_of(formats.a), std::move(a)}),
                  g.input("b", {storage_of(formats.b), std::move(b)})};
  if (is_float8(formats.a))
    for (const char* name : {"a_scale", "b_scale"}) inputs.push_back(g.input(name, {DType::kF32, {}}));
  g.add1(op::matmul, std::move(inputs), attrs);
  return graph;
}

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
          operand_format(graph, node, node.inputs.size() > 4 ? 4 : 0),
          node.outputs.size() > 4 ? format_of(graph.dtype(node.outputs[4])) : operand_format(graph, node, 0)};
}

Graph classifier_logits(const ClassifierSizes& s, int64_t rows) {
  return product({s.logits, s.logits, DType::kF32, s.dtype}, {rows, s.width}, {s.vocab, s.width}, true);
}

Graph classifier_dx(const ClassifierSizes& s, int64_t rows) {
  Shape dlogits{rows, s.vocab};
  if (!s.has_narrow_gradient()) return product(uniform_formats(s.format), dlogits, {s.vocab, s.width}, false);
  return product({s.gradients, s.logits, DType::kF32, s.dtype}, dlogits, {s.width, s.vocab}, true);
}

Graph classifier_turned_x(const ClassifierSizes& s, int64_t rows) {
  Graph graph("part");
  GraphBuilder g(graph);
  transpose(g, g.input("x", {storage_of(s.logits), {rows, s.width}}), {1, 0});
  return graph;
}

Graph classifier_dweight(const ClassifierSizes& s, int64_t rows, bool adds) {
  bool narrow = s.has_narrow_gradient();
  MatmulForm form;
  form.trans_a = true;
  form.trans_b = narrow;
  form.formats = narrow ? MatmulFormats{s.gradients, s.logits, DType::kF32, DType::kF32} : uniform_formats(s.format);
  form.output = DType::kF32;
  ValueType x{storage_of(form.formats.b), narrow ? Shape{s.width, rows} : Shape{rows, s.width}};
  ValueTypes types{{storage_of(form.formats.a), {rows, s.vocab}}, x};
  if (narrow) {
    types.resize(4, {DType::kF32, {}});
    form.scale_a = 2, form.scale_b = 3;
  }
  form.addend = adds ? int(types.size()) : -1;
  if (adds) types.push_back({DType::kF32, {s.vocab, s.width}});
  Graph graph("part");
  GraphBuilder g(graph);
  ValueIds inputs;
  for (const ValueType& type : types) inputs.push_back(g.input("x" + std::to_string(inputs.size()), type));
  g.add(op::fused_matmul, inputs, {}, make_body(form, types));
  return graph;
}

}  // namespace tokamak::cuda
