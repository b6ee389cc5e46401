#include "passes/join_projections.h"

#include "graph/rewriter.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/packed_rotary.h"
#include "ops/pointwise.h"
#include "ops/rotary.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace tokamak {
namespace {

constexpr size_t kParts = 3;  // q, k and v
using Parts = std::array<ValueId, kParts>;
using Nodes = std::array<int, kParts>;

// The products of one rotary_qkv.
struct Forward {
  ValueId input;
  Parts weights;
  Nodes products;
};

// Those of one rotary_qkv_grad: of the input's gradient, which `sum` adds up with `inner` before it, and of the
// weights, of views of what it gives where there are any.
struct Backward {
  ValueId input;  // of the weights' products
  Parts weights;
  Nodes input_products, weight_products;
  std::set<int> views;
  int inner, sum;
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), users_(find_users(graph)), escaping_(find_escaping(graph)) {}

  std::optional<Forward> forward(const Node& rotary) const {
    Forward found{};
    for (size_t i = 0; i < kParts; ++i) {
      int maker = graph_.producer(rotary.inputs[i]);
      if (maker < 0 || !is_product(maker, false, true) || readers(rotary.inputs[i]).size() != 1) return {};
      found.products[i] = maker;
      found.weights[i] = node(maker).inputs[1];
      if (i > 0 && (node(maker).inputs[0] != found.input || node(maker).attrs != node(found.products[0]).attrs))
        return {};
      found.input = node(maker).inputs[0];
    }
    if (!are_copies(found.weights) || !pays(rotary.inputs, found.weights)) return {};
    return found;
  }

  std::optional<Backward> backward(const Node& rotary) const {
    Backward found{};
    for (size_t i = 0; i < kParts; ++i)
      if (!add_products(rotary.outputs[i], i, found)) return {};
    if (!are_copies(found.weights) || !pays(rotary.outputs, found.weights) || !find_sum(found)) return {};
    return found;
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  // None where it leaves the graph.
  std::span<const int> readers(ValueId value) const {
    if (escaping_[size_t(value)]) return {};
    return users_[size_t(value)];
  }

  bool is_product(int n, bool trans_a, bool trans_b) const {
    const Node& product = node(n);
    return product.op == &op::matmul && product.inputs.size() == 2 && graph_.shape(product.inputs[1]).size() == 2 &&
           product.attrs.get_bool("trans_a") == trans_a && product.attrs.get_bool("trans_b") == trans_b;
  }

  // Else they would be copied for the joined product alone.
  bool are_copies(const Parts& weights) const {
    return std::ranges::all_of(weights, [&](ValueId weight) {
      int maker = graph_.producer(weight);
      return maker >= 0 && node(maker).op == &op::cast;
    });
  }

  // Putting weights side by side moves fewer bytes than reading the input and writing its gradient once saves.
  bool pays(const ValueIds& projected, const Parts& weights) const {
    const Shape& shape = graph_.shape(projected[0]);
    int64_t columns = 0;
    for (ValueId weight : weights) columns += graph_.shape(weight)[0];
    return shape[0] * shape[1] > columns;
  }

  // What reads the gradient of one part: the product with its weight, and that with the input, perhaps of a view.
  bool add_products(ValueId gradient, size_t i, Backward& found) const {
    if (readers(gradient).size() != 2) return false;
    bool has_input = false, has_weight = false;
    for (int reader : readers(gradient)) {
      if (node(reader).inputs[0] != gradient) return false;
      if (!has_input && is_product(reader, false, false)) {
        has_input = true;
        found.input_products[i] = reader;
        found.weights[i] = node(reader).inputs[1];
        continue;
      }
      if (node(reader).op == &op::reshape && readers(node(reader).outputs[0]).size() == 1) {
        found.views.insert(reader);
        reader = readers(node(reader).outputs[0])[0];
      }
      if (has_weight || !is_product(reader, true, false)) return false;
      has_weight = true;
      found.weight_products[i] = reader;
    }
    if (!has_input || !has_weight) return false;
    return i == 0 || is_like(found.input_products, i) && is_like(found.weight_products, i) &&
                         input_of(found, i) == input_of(found, 0);
  }
  bool is_like(const Nodes& products, size_t i) const { return node(products[i]).attrs == node(products[0]).attrs; }
  ValueId input_of(const Backward& found, size_t i) const { return node(found.weight_products[i]).inputs[1]; }

  // Two of the three are added, and then the third.
  bool find_sum(Backward& found) const {
    std::map<int, int> terms;  // by sum
    for (int product : found.input_products) {
      std::span<const int> reader = readers(node(product).outputs[0]);
      if (reader.size() != 1 || node(reader[0]).op != &op::add) return false;
      ++terms[reader[0]];
    }
    if (terms.size() != 2) return false;
    found.inner = terms.begin()->second == 2 ? terms.begin()->first : terms.rbegin()->first;
    found.sum = terms.begin()->second == 2 ? terms.rbegin()->first : terms.begin()->first;
    std::span<const int> reader = readers(node(found.inner).outputs[0]);
    found.input = input_of(found, 0);
    return reader.size() == 1 && reader[0] == found.sum &&
           graph_.type(node(found.sum).outputs[0]) == graph_.type(node(found.input_products[0]).outputs[0]);
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> escaping_;
};

class ProjectionJoiner {
 public:
  explicit ProjectionJoiner(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  bool run() {
    find();
    if (forward_.empty() && backward_.empty()) return false;
    for (int n = 0; n < int(graph_.nodes().size()); ++n) rewrite(n);
    return true;
  }

  Graph finish() { return rewriter_.finish(); }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }

  void find() {
    Finder finder(graph_);
    for (int n = 0; n < int(graph_.nodes().size()); ++n) {
      if (node(n).op == &op::rotary_qkv)
        if (std::optional<Forward> found = finder.forward(node(n))) {
          replaced_.insert(found->products.begin(), found->products.end());
          forward_[n] = *found;
        }
      if (node(n).op == &op::rotary_qkv_grad)
        if (std::optional<Backward> found = finder.backward(node(n))) {
          replaced_.insert(found->input_products.begin(), found->input_products.end());
          replaced_.insert(found->views.begin(), found->views.end());
          replaced_.insert(found->inner);
          sums_[found->sum] = n;
          for (int product : found->weight_products) weights_[product] = n;
          backward_[n] = *found;
        }
    }
  }

  void rewrite(int n) {
    if (replaced_.contains(n)) return;
    if (auto found = forward_.find(n); found != forward_.end())
      join(node(n), found->second);
    else if (backward_.contains(n))
      packed_[n] = packed_rotary(rewriter_.in_place_of(node(n)), graph_, node(n), rewriter_.map(node(n).inputs[0]),
                                 rewriter_.map(node(n).inputs[1]));
    else if (auto sum = sums_.find(n); sum != sums_.end())
      join_sum(node(n), sum->second);
    else if (auto weight = weights_.find(n); weight != weights_.end())
      join_weights(weight->second);
    else
      rewriter_.copy(node(n));
  }

  // Where the backward pass gathers parameters again, with ZeRO 3, its weights are others than the forward pass's.
  ValueId side_by_side(const Parts& weights, const Node& at) {
    if (auto made = joined_.find(weights); made != joined_.end()) return made->second;
    ValueIds parts = rewriter_.map({weights.begin(), weights.end()});
    return joined_[weights] = concat(rewriter_.in_place_of(at), parts, 0);
  }

  void join(const Node& rotary, const Forward& found) {
    ValueId weight = side_by_side(found.weights, rotary);
    const Node& first = node(found.products[0]);
    GraphBuilder& g = rewriter_.in_place_of(first);
    ValueId packed = g.add1(op::matmul, {rewriter_.map(found.input), weight}, first.attrs);
    rewriter_.replace(rotary.outputs[0], packed_rotary(rewriter_.in_place_of(rotary), graph_, rotary, packed,
                                                       rewriter_.map(rotary.inputs.back())));
  }

  void join_sum(const Node& sum, int rotary) {
    const Backward& found = backward_.at(rotary);
    const Node& first = node(found.input_products[0]);
    ValueId weight = side_by_side(found.weights, first);
    ValueId input = packed_.at(rotary);
    rewriter_.replace(sum.outputs[0], rewriter_.in_place_of(first).add1(op::matmul, {input, weight}, first.attrs));
  }

  // All three where the first of them stands.
  void join_weights(int rotary) {
    const Backward& found = backward_.at(rotary);
    if (!done_.insert(rotary).second) return;
    const Node& first = node(found.weight_products[0]);
    GraphBuilder& g = rewriter_.in_place_of(first);
    ValueId gradient = packed_.at(rotary);
    if (graph_.shape(first.inputs[0]).size() == 2) gradient = reshape(g, gradient, {-1, g.shape(gradient).back()});
    ValueId joined = g.add1(op::matmul, {gradient, rewriter_.map(found.input)}, first.attrs);
    int64_t begin = 0;
    for (int product : found.weight_products) {
      int64_t rows = graph_.shape(node(product).outputs[0])[0];
      rewriter_.replace(node(product).outputs[0], slice(g, joined, 0, begin, rows));
      begin += rows;
    }
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<int, Forward> forward_;     // by node of rotary_qkv,
  std::map<int, Backward> backward_;   // and rotary_qkv_grad
  std::map<int, int> sums_, weights_;  // the latter by their last sum and products of weights
  std::set<int> replaced_, done_;      // nodes that have no place of their own; gradients whose weights are joined
  std::map<int, ValueId> packed_;      // gradients, of the new graph
  std::map<Parts, ValueId> joined_;    // weights side by side, likewise
};

}  // namespace

bool join_projections(Graph& graph, const PassContext&) {
  ProjectionJoiner joiner(graph);
  if (!joiner.run()) return false;
  graph = joiner.finish();
  return true;
}

}  // namespace tokamak
