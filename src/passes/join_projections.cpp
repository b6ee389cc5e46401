#include "passes/join_projections.h"

#include "ops/packed_rotary.h"
#include "ops/rotary.h"
#include "passes/join_products.h"

#include <algorithm>

namespace tokamak {
namespace {

class ProjectionJoiner : public ProductJoiner {
 public:
  using ProductJoiner::ProductJoiner;

 private:
  void find(int n) override {
    if (node(n).op == &op::rotary_qkv) {
      ValueIds projected(node(n).inputs.begin(), node(n).inputs.end() - 1);  // q, k and v, but not the positions
      bool alone = std::ranges::all_of(projected, [&](ValueId value) { return products().readers(value).size() == 1; });
      if (std::optional<ForwardProducts> found = products().forward(projected); found && alone) take(*found, n);
    }
    if (node(n).op == &op::rotary_qkv_grad)
      if (std::optional<GradientProducts> found = products().gradients(node(n).outputs)) take(*found, n);
  }

  bool replace(int n) override {
    if (has_forward(n))
      rewriter().replace(node(n).outputs[0], packed(node(n), product(n)));
    else if (has_backward(n))
      set_gradient(n, packed(node(n), rewriter().map(node(n).inputs[0])));
    else
      return false;
    return true;
  }

  ValueId packed(const Node& rotary, ValueId from) {
    GraphBuilder& g = rewriter().in_place_of(rotary);
    return packed_rotary(g, graph(), rotary, from, rewriter().map(rotary.inputs.back()));
  }
};

}  // namespace

bool join_projections(Graph& graph, const PassContext& context) { return ProjectionJoiner(graph, context).run(graph); }

}  // namespace tokamak
