#include "passes/async_products.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/row_block.h"
#include "passes/product_block.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <map>
#include <set>

namespace tokamak {
namespace {

// A product that can be divided, and what it reads.
struct Product {
  int node = -1;
  size_t a = 0;            // position of the gathered operand
  ValueId own = kNoValue;  // what the rank itself hands to the gather
  int64_t size = 0;        // of the axis
  std::shared_ptr<const Graph> block;
};

class ProductDivider {
 public:
  ProductDivider(const Graph& graph, const Target& target) : graph_(graph), target_(target), rewriter_(graph) {
    for (int n = 0; n < int(graph.nodes().size()); ++n)
      if (std::optional<Product> product = find(n)) {
        by_gather_[gather_of(n, product->a)].push_back(n);
        products_.emplace(n, std::move(*product));
      }
  }

  bool any() const { return !products_.empty(); }

  Graph run() {
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      auto product = products_.find(n);
      if (product == products_.end()) {
        rewriter_.copy(node(n));
        continue;
      }
      begin_all(n);
      go_on(product->second);
    }
    return rewriter_.finish();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  int gather_of(int n, size_t a) const { return graph_.producer(behind_reshapes(graph_, node(n).inputs[a])); }

  std::optional<Product> find(int n) const {
    const Node& product = node(n);
    if (product.op != &op::matmul && product.op != &op::fused_matmul) return std::nullopt;
    int a = read_matmul(graph_, product).a;
    int maker = a < 0 ? -1 : gather_of(n, size_t(a));
    if (maker < 0 || node(maker).op != &op::all_gather || node(maker).attrs.get_string("axis") != kTensorAxis)
      return std::nullopt;
    ValueId gathered = behind_reshapes(graph_, product.inputs[size_t(a)]);
    const ValueIds& all = node(maker).outputs;
    auto which = size_t(std::find(all.begin(), all.end(), gathered) - all.begin());
    CutDim cut = cut_dims(node(maker).attrs)[which];
    if (cut.dim != 0 || cut.blocks != 1) return std::nullopt;
    int64_t size = node(maker).attrs.get_int("size");
    Product found{n, size_t(a), node(maker).inputs[which], size, product_block(graph_, product, size, target_)};
    return found.block ? std::optional(std::move(found)) : std::nullopt;
  }

  // The products of one gather whose other operands are there when the first of them comes.
  void begin_all(int n) {
    const std::vector<int>& all = by_gather_.at(gather_of(n, products_.at(n).a));
    for (int other : all)
      if (other >= n && is_there(other, n)) begin(products_.at(other));
  }

  bool is_there(int product, int at) const {
    return std::ranges::all_of(node(product).inputs, [&](ValueId input) { return graph_.producer(input) < at; });
  }

  void begin(const Product& product) {
    if (!begun_.insert(product.node).second) return;
    const Node& whole = node(product.node);
    GraphBuilder& g = rewriter_.in_place_of(whole);
    ValueIds operands = rewriter_.map(whole.inputs);
    Shape own = g.shape(operands[product.a]);
    own[0] /= product.size;
    operands[product.a] = reshape(g, rewriter_.map(product.own), own);
    rows_[product.node] =
        row_block(g, product.block, std::move(operands), rank_coordinate(g, kTensorAxis), product.size, 0, {});
  }

  void go_on(const Product& product) {
    const Node& whole = node(product.node);
    GraphBuilder& g = rewriter_.in_place_of(whole);
    ValueIds rows = rows_.at(product.node);
    for (int64_t step = 1; step < product.size; ++step)
      rows = row_block(g, product.block, rewriter_.map(whole.inputs), rank_coordinate(g, kTensorAxis), product.size,
                       step, rows);
    rewriter_.replace(whole.outputs, rows);
  }

  const Graph& graph_;
  const Target& target_;
  Rewriter rewriter_;
  std::map<int, Product> products_;            // by node
  std::map<int, std::vector<int>> by_gather_;  // products by node of the gather, in order
  std::set<int> begun_;
  std::map<int, ValueIds> rows_;  // by product: what has been written of it so far, in the new graph
};

}  // namespace

bool async_products(Graph& graph, const PassContext& context) {
  ProductDivider divider(graph, context.target);
  if (!divider.any()) return false;
  graph = divider.run();
  return true;
}

}  // namespace tokamak
