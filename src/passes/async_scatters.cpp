#include "passes/async_scatters.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/row_block.h"
#include "passes/product_block.h"
#include "passes/step_mesh.h"

#include <map>

namespace tokamak {
namespace {

// A product of which nothing but its scattered sum is read.
struct Scattered {
  int product = -1, scatter = -1;
  int64_t size = 0;  // of the axis
  std::shared_ptr<const Graph> block;
};

class ScatterDivider {
 public:
  ScatterDivider(const Graph& graph, const Target& target)
      : graph_(graph), target_(target), users_(find_users(graph)), escaping_(find_escaping(graph)), rewriter_(graph) {
    for (int n = 0; n < int(graph.nodes().size()); ++n)
      if (std::optional<Scattered> found = find(n)) {
        by_product_[found->product] = *found;
        by_scatter_[n] = found->product;
      }
  }

  bool any() const { return !by_product_.empty(); }

  Graph run() {
    for (int n = 0; n < int(graph_.nodes().size()); ++n)
      if (auto product = by_product_.find(n); product != by_product_.end())
        compute(product->second);
      else if (auto scatter = by_scatter_.find(n); scatter != by_scatter_.end())
        add_up(by_product_.at(scatter->second));
      else if (!is_between(n))
        rewriter_.copy(node(n));
    return rewriter_.finish();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  std::optional<Scattered> find(int n) const {
    const Node& scatter = node(n);
    if (scatter.op != &op::reduce_scatter || scatter.inputs.size() != 1 || is_ordered(scatter.attrs) ||
        scatter.attrs.get_string("axis") != kTensorAxis)
      return std::nullopt;
    CutDim cut = cut_dims(scatter.attrs)[0];
    if (cut.dim != 0 || cut.blocks != 1 || !is_read_alone(scatter.inputs[0])) return std::nullopt;
    int maker = graph_.producer(behind_reshapes(graph_, scatter.inputs[0]));
    if (maker < 0 || node(maker).outputs.size() != 1) return std::nullopt;
    int64_t size = scatter.attrs.get_int("size");
    Scattered found{maker, n, size, product_block(graph_, node(maker), size, target_)};
    return found.block ? std::optional(std::move(found)) : std::nullopt;
  }

  // By one node, and so is what it shows.
  bool is_read_alone(ValueId value) const {
    ValueId shown = behind_reshapes(graph_, value);
    for (;; value = node(graph_.producer(value)).inputs[0]) {
      if (escaping_[size_t(value)] || users_[size_t(value)].size() != 1) return false;
      if (value == shown) return true;
    }
  }

  // A reshape between the two.
  bool is_between(int n) const {
    if (node(n).op != &op::reshape) return false;
    auto product = by_product_.find(graph_.producer(behind_reshapes(graph_, node(n).inputs[0])));
    return product != by_product_.end();
  }

  void compute(const Scattered& found) {
    const Node& product = node(found.product);
    GraphBuilder& g = rewriter_.in_place_of(product);
    ValueId at = rank_coordinate(g, kTensorAxis);
    ValueIds& terms = terms_[found.product];
    for (int64_t step = found.size; step-- > 0;) {
      ValueId rows = row_block_alone(g, found.block, rewriter_.map(product.inputs), at, found.size, step)[0];
      terms.push_back(step > 0 ? permute(g, rows, {kTensorAxis, found.size}, step) : rows);
    }
  }

  // Of two terms it is rounded once as it is.
  void add_up(const Scattered& found) {
    const Node& scatter = node(found.scatter);
    GraphBuilder& g = rewriter_.in_place_of(scatter);
    const ValueIds& terms = terms_.at(found.product);
    DType type = g.type(terms[0]).dtype, wide = terms.size() > 2 ? DType::kF32 : type;
    ValueId sum = cast(g, terms.back(), wide);
    for (size_t i = terms.size() - 1; i-- > 0;) sum = add(g, sum, cast(g, terms[i], wide));
    rewriter_.replace(scatter.outputs[0], reshape(g, cast(g, sum, type), graph_.shape(scatter.outputs[0])));
  }

  const Graph& graph_;
  const Target& target_;
  Users users_;
  std::vector<bool> escaping_;
  Rewriter rewriter_;
  std::map<int, Scattered> by_product_;  // by node
  std::map<int, int> by_scatter_;        // products by node of the scatter
  std::map<int, ValueIds> terms_;        // by product: what others have sent, and last the rank's own, in the new graph
};

}  // namespace

bool async_scatters(Graph& graph, const PassContext& context) {
  ScatterDivider divider(graph, context.target);
  if (!divider.any()) return false;
  graph = divider.run();
  return true;
}

}  // namespace tokamak
