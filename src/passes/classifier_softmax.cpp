#include "passes/classifier_softmax.h"

#include "base/error.h"
#include "graph/builder.h"
#include "ops/cross_entropy.h"
#include "ops/pointwise.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"

namespace tokamak {

Graph classifier_softmax(int64_t rows, int64_t vocab, int64_t classes, DType dtype, const Softcap& softcap,
                         bool narrow) {
  Graph graph("classifier_softmax");
  GraphBuilder g(graph);
  ValueId logits = g.input("logits", {dtype, {rows, vocab}}), targets = g.input("targets", {DType::kI32, {rows}});
  ValueId dloss = g.input("dloss", {DType::kF32, {rows}});
  Attrs attrs{{"classes", classes}};
  set_softcap(attrs, softcap);
  ValueIds loss = g.add(op::cross_entropy, {logits, targets}, attrs);
  graph.add_result("losses", loss[0]);
  ValueId dlogits = g.add1(op::cross_entropy_grad, {logits, targets, loss[1], dloss}, attrs);
  if (narrow) {
    ValueId inverse = g.input("inverse", {DType::kF32, {}});
    dlogits = cast(g, mul(g, cast(g, dlogits, DType::kF32), inverse), DType::kF8E5M2);
  }
  graph.add_result("dlogits", dlogits);
  form_groups(graph, {});
  fuse(graph, {});
  TOKAMAK_CHECK(graph.nodes().size() == 1, "the classifier's softmax became {} groups", graph.nodes().size());
  return graph;
}

}  // namespace tokamak
