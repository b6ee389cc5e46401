#include "passes/async_products.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/movement.h"
#include "ops/row_block.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace tokamak {
namespace {

constexpr int64_t kLeastRows = 128;     // of a block
constexpr int64_t kAlignedBytes = 256;  // at which every block's operands begin, as kernels expect of tensors

// A product that can be divided, and what it reads.
struct Product {
  int node = -1;
  size_t a = 0;            // position of the gathered operand
  ValueId own = kNoValue;  // what the rank itself hands to the gather
  int64_t size = 0;        // of the axis
  std::shared_ptr<const Graph> block;
};

ValueType one_of(ValueType type, int64_t size) {
  type.shape[0] /= size;
  return type;
}

class ProductDivider {
 public:
  explicit ProductDivider(const Graph& graph) : graph_(graph), rewriter_(graph) {
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

  // The value that a reshaped operand shows.
  ValueId behind_reshapes(ValueId value) const {
    for (int maker = graph_.producer(value); maker >= 0 && node(maker).op == &op::reshape;
         maker = graph_.producer(value))
      value = node(maker).inputs[0];
    return value;
  }

  int gather_of(int n, size_t a) const { return graph_.producer(behind_reshapes(node(n).inputs[a])); }

  std::optional<Product> find(int n) const {
    const Node& product = node(n);
    if (product.op != &op::matmul && product.op != &op::fused_matmul) return std::nullopt;
    MatmulForm form = read_matmul(graph_, product);
    if (form.batch != 1 || form.trans_a || form.a < 0 || form.sums >= 0 || form.prologue) return std::nullopt;
    int maker = gather_of(n, size_t(form.a));
    if (maker < 0 || node(maker).op != &op::all_gather || node(maker).attrs.get_string("axis") != kTensorAxis)
      return std::nullopt;
    ValueId gathered = behind_reshapes(product.inputs[size_t(form.a)]);
    const ValueIds& all = node(maker).outputs;
    auto which = size_t(std::find(all.begin(), all.end(), gathered) - all.begin());
    CutDim cut = cut_dims(node(maker).attrs)[which];
    if (cut.dim != 0 || cut.blocks != 1) return std::nullopt;
    Product found{n, size_t(form.a), node(maker).inputs[which], node(maker).attrs.get_int("size"), nullptr};
    found.block = block_of(product, form, found.size);
    return found.block ? std::optional(std::move(found)) : std::nullopt;
  }

  // Null where there is none.
  std::shared_ptr<const Graph> block_of(const Node& product, const MatmulForm& form, int64_t size) const {
    if (form.m / size < kLeastRows) return nullptr;
    auto block = std::make_shared<Graph>("block");
    GraphBuilder g(*block);
    ValueTypes types;
    ValueIds inputs;
    for (size_t i = 0; i < product.inputs.size(); ++i) {
      bool has_rows = int(i) == form.a || int(i) == form.operand || int(i) == form.addend;
      const ValueType& whole = graph_.type(product.inputs[i]);
      if (has_rows && !is_divisible(whole, size)) return nullptr;
      types.push_back(has_rows ? one_of(whole, size) : whole);
      inputs.push_back(g.input("a" + std::to_string(i), types.back()));
    }
    ValueIds made = g.add(*product.op, inputs, product.attrs, product.body ? make_body(form, types) : nullptr);
    for (size_t i = 0; i < made.size(); ++i) {
      const ValueType& whole = graph_.type(product.outputs[i]);
      if (!is_divisible(whole, size) || g.type(made[i]) != one_of(whole, size)) return nullptr;
      block->add_result("r" + std::to_string(i), made[i]);
    }
    return block;
  }

  static bool is_divisible(const ValueType& whole, int64_t size) {
    return !whole.shape.empty() && whole.shape[0] % size == 0 && num_bytes(whole) / size % kAlignedBytes == 0;
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
    rows_[product.node] = row_block(g, product.block, std::move(operands), coordinate(g), product.size, 0, {});
  }

  void go_on(const Product& product) {
    const Node& whole = node(product.node);
    GraphBuilder& g = rewriter_.in_place_of(whole);
    ValueIds rows = rows_.at(product.node);
    for (int64_t step = 1; step < product.size; ++step)
      rows = row_block(g, product.block, rewriter_.map(whole.inputs), coordinate(g), product.size, step, rows);
    rewriter_.replace(whole.outputs, rows);
  }

  static ValueId coordinate(GraphBuilder& g) {
    std::string name = coordinate_input(kTensorAxis);
    ValueId known = g.graph().find_argument(name);
    return known != kNoValue ? known : g.input(std::move(name), {DType::kI32, {}});
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<int, Product> products_;            // by node
  std::map<int, std::vector<int>> by_gather_;  // products by node of the gather, in order
  std::set<int> begun_;
  std::map<int, ValueIds> rows_;  // by product: what has been written of it so far, in the new graph
};

}  // namespace

bool async_products(Graph& graph, const PassContext&) {
  ProductDivider divider(graph);
  if (!divider.any()) return false;
  graph = divider.run();
  return true;
}

}  // namespace tokamak
