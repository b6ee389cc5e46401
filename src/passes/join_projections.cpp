#include "passes/join_projections.h"

#include "ops/packed_rotary.h"
#include "ops/rotary.h"
#include "passes/join_products.h"

#include <algorithm>

namespace tokamak {
namespace {

class ProjectionJoiner {
 public:
  ProjectionJoiner(const Graph& graph, const Target& target) : graph_(graph), target_(target), joiner_(graph) {}

  bool run() {
    find();
    if (forward_.empty() && backward_.empty()) return false;
    for (int n = 0; n < int(graph_.nodes().size()); ++n) rewrite(n);
    return true;
  }

  Graph finish() { return joiner_.rewriter().finish(); }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  void find() {
    JoinableProducts finder(graph_, target_);
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      if (node(n).op == &op::rotary_qkv) {
        ValueIds projected(node(n).inputs.begin(), node(n).inputs.end() - 1);  // q, k and v, but not the positions
        bool alone = std::ranges::all_of(projected, [&](ValueId value) { return finder.readers(value).size() == 1; });
        if (std::optional<ForwardProducts> found = finder.forward(projected); found && alone) {
          joiner_.take(*found);
          forward_[n] = *found;
        }
      }
      if (node(n).op == &op::rotary_qkv_grad)
        if (std::optional<GradientProducts> found = finder.gradients(node(n).outputs)) {
          joiner_.take(*found, n);
          backward_.insert(n);
        }
    }
  }

  void rewrite(int n) {
    if (joiner_.rewrite(n)) return;
    if (auto found = forward_.find(n); found != forward_.end())
      joiner_.rewriter().replace(node(n).outputs[0], packed(node(n), joiner_.product(found->second, node(n))));
    else if (backward_.contains(n))
      joiner_.set_gradient(n, packed(node(n), joiner_.rewriter().map(node(n).inputs[0])));
    else
      joiner_.rewriter().copy(node(n));
  }

  ValueId packed(const Node& rotary, ValueId from) {
    Rewriter& rewriter = joiner_.rewriter();
    return packed_rotary(rewriter.in_place_of(rotary), graph_, rotary, from, rewriter.map(rotary.inputs.back()));
  }

  const Graph& graph_;
  const Target& target_;
  ProductJoiner joiner_;
  std::map<int, ForwardProducts> forward_;  // by node of rotary_qkv
  std::set<int> backward_;                  // nodes of rotary_qkv_grad
};

}  // namespace

bool join_projections(Graph& graph, const PassContext& context) {
  ProjectionJoiner joiner(graph, context.target);
  if (!joiner.run()) return false;
  graph = joiner.finish();
  return true;
}

}  // namespace tokamak
