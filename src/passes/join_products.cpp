#include "passes/join_products.h"

#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {

JoinableProducts::JoinableProducts(const Graph& graph, const Target& target)
    : graph_(graph), stores_f32_(target.matmul_accumulate), users_(find_users(graph)), escaping_(find_escaping(graph)) {
}

std::span<const int> JoinableProducts::readers(ValueId value) const {
  if (escaping_[size_t(value)]) return {};
  return users_[size_t(value)];
}

std::optional<ForwardProducts> JoinableProducts::forward(const ValueIds& projected) const {
  ForwardProducts found;
  for (ValueId value : projected) {
    int maker = graph_.producer(value);
    if (maker < 0 || !is_product(maker, false, true)) return {};
    found.products.push_back(maker);
    found.weights.push_back(node(maker).inputs[1]);
    const Node& first = node(found.products[0]);
    if (node(maker).inputs[0] != first.inputs[0] || node(maker).attrs != first.attrs) return {};
    found.input = first.inputs[0];
  }
  if (!are_copies(found.weights) || !pays(projected[0], found.weights)) return {};
  return found;
}

std::optional<GradientProducts> JoinableProducts::gradients(const ValueIds& gradients) const {
  GradientProducts found;
  for (ValueId gradient : gradients)
    if (!add_products(gradient, found)) return {};
  if (!are_alike(found) || !are_copies(found.weights) || !pays(gradients[0], found.weights) || !find_sum(found))
    return {};
  find_widened(found);
  return found;
}

bool JoinableProducts::is_product(int n, bool trans_a, bool trans_b) const {
  const Node& product = node(n);
  return product.op == &op::matmul && product.inputs.size() == 2 && graph_.shape(product.inputs[1]).size() == 2 &&
         product.attrs.get_bool("trans_a") == trans_a && product.attrs.get_bool("trans_b") == trans_b;
}

// Else they would be copied for the joined product alone.
bool JoinableProducts::are_copies(const ValueIds& weights) const {
  return std::ranges::all_of(weights, [&](ValueId weight) {
    int maker = graph_.producer(weight);
    return maker >= 0 && node(maker).op == &op::cast;
  });
}

// Putting weights side by side moves fewer bytes than reading the input and writing its gradient once saves.
bool JoinableProducts::pays(ValueId projected, const ValueIds& weights) const {
  const Shape& shape = graph_.shape(projected);
  int64_t columns = 0;
  for (ValueId weight : weights) columns += graph_.shape(weight)[0];
  return num_elements(shape) / shape.back() > columns;
}

// What reads the gradient of one part: the product with its weight, and that with the input, perhaps of a view.
bool JoinableProducts::add_products(ValueId gradient, GradientProducts& found) const {
  if (readers(gradient).size() != 2) return false;
  bool has_input = false, has_weight = false;
  for (int reader : readers(gradient)) {
    if (node(reader).inputs[0] != gradient) return false;
    if (!has_input && is_product(reader, false, false)) {
      has_input = true;
      found.input_products.push_back(reader);
      found.weights.push_back(node(reader).inputs[1]);
      continue;
    }
    if (node(reader).op == &op::reshape && readers(node(reader).outputs[0]).size() == 1) {
      found.views.insert(reader);
      reader = readers(node(reader).outputs[0])[0];
    }
    if (has_weight || !is_product(reader, true, false)) return false;
    has_weight = true;
    found.weight_products.push_back(reader);
  }
  return has_input && has_weight;
}

bool JoinableProducts::are_alike(const GradientProducts& found) const {
  const Node &of_input = node(found.input_products[0]), &of_weight = node(found.weight_products[0]);
  return std::ranges::all_of(found.input_products, [&](int n) { return node(n).attrs == of_input.attrs; }) &&
         std::ranges::all_of(found.weight_products, [&](int n) {
           return node(n).attrs == of_weight.attrs && node(n).inputs[1] == of_weight.inputs[1];
         });
}

// Two are added, and then the third, if there is one.
bool JoinableProducts::find_sum(GradientProducts& found) const {
  std::map<int, int> terms;  // by sum
  for (int product : found.input_products) {
    std::span<const int> reader = readers(node(product).outputs[0]);
    if (reader.size() != 1 || node(reader[0]).op != &op::add) return false;
    ++terms[reader[0]];
  }
  if (terms.size() + 1 != found.input_products.size()) return false;
  found.sum = terms.rbegin()->first;
  if (terms.size() == 2) {
    int inner = terms.begin()->first;  // the sum that reads it stands behind it
    std::span<const int> reader = readers(node(inner).outputs[0]);
    if (reader.size() != 1 || reader[0] != found.sum) return false;
    found.inner.insert(inner);
  }
  found.input = node(found.weight_products[0]).inputs[1];
  return graph_.type(node(found.sum).outputs[0]) == graph_.type(node(found.input_products[0]).outputs[0]);
}

// Apart, each product would be stored in f32 by its kernel or added there, and never be rounded.
void JoinableProducts::find_widened(GradientProducts& found) const {
  if (!stores_f32_) return;
  std::set<int> casts;
  for (int product : found.weight_products) {
    ValueId gradient = node(product).outputs[0];
    if (graph_.dtype(gradient) == DType::kF32 || readers(gradient).empty()) return;
    for (int reader : readers(gradient)) {
      if (graph_.dtype(node(reader).outputs[0]) != DType::kF32) return;
      if (node(reader).op == &op::cast)
        casts.insert(reader);
      else if (node(reader).op != &op::add)
        return;
    }
  }
  found.is_widened = true;
  found.casts = std::move(casts);
}

bool ProductJoiner::run(Graph& joined) {
  for (int n = 0; n < int(graph_.nodes().size()); ++n) find(n);
  if (forward_.empty() && backward_.empty()) return false;
  for (int n = 0; n < int(graph_.nodes().size()); ++n)
    if (!rewrite(n) && !replace(n)) rewriter_.copy(node(n));
  joined = rewriter_.finish();
  return true;
}

void ProductJoiner::take(const ForwardProducts& found, int place) {
  replaced_.insert(found.products.begin(), found.products.end());
  forward_[place] = found;
}

void ProductJoiner::take(const GradientProducts& found, int place) {
  replaced_.insert(found.input_products.begin(), found.input_products.end());
  replaced_.insert(found.views.begin(), found.views.end());
  replaced_.insert(found.inner.begin(), found.inner.end());
  casts_.insert(found.casts.begin(), found.casts.end());
  sums_[found.sum] = place;
  for (int product : found.weight_products) weights_[product] = place;
  backward_[place] = found;
}

// Whether the node is one of the products or goes with them; then it is done.
bool ProductJoiner::rewrite(int n) {
  if (replaced_.contains(n)) return true;
  if (casts_.contains(n)) {
    rewriter_.replace(node(n).outputs[0], rewriter_.map(node(n).inputs[0]));
    return true;
  }
  if (auto sum = sums_.find(n); sum != sums_.end()) {
    join_sum(node(n), sum->second);
    return true;
  }
  auto weight = weights_.find(n);
  if (weight != weights_.end()) join_weights(weight->second);
  return weight != weights_.end();
}

ValueId ProductJoiner::product(int place) {
  const ForwardProducts& found = forward_.at(place);
  ValueId weight = side_by_side(found.weights, node(place));
  const Node& first = node(found.products[0]);
  return rewriter_.in_place_of(first).add1(op::matmul, {rewriter_.map(found.input), weight}, first.attrs);
}

// Where the backward pass gathers parameters again, with ZeRO 3, its weights are others than the forward pass's.
ValueId ProductJoiner::side_by_side(const ValueIds& weights, const Node& at) {
  if (auto made = joined_.find(weights); made != joined_.end()) return made->second;
  return joined_[weights] = concat(rewriter_.in_place_of(at), rewriter_.map(weights), 0);
}

void ProductJoiner::join_sum(const Node& sum, int place) {
  const GradientProducts& found = backward_.at(place);
  const Node& first = node(found.input_products[0]);
  ValueId weight = side_by_side(found.weights, first);
  ValueId gradient = gradients_.at(place);
  rewriter_.replace(sum.outputs[0], rewriter_.in_place_of(first).add1(op::matmul, {gradient, weight}, first.attrs));
}

// All of them where the first stands.
void ProductJoiner::join_weights(int place) {
  const GradientProducts& found = backward_.at(place);
  if (!done_.insert(place).second) return;
  const Node& first = node(found.weight_products[0]);
  GraphBuilder& g = rewriter_.in_place_of(first);
  ValueId gradient = gradients_.at(place);
  if (graph_.shape(first.inputs[0]).size() == 2) gradient = reshape(g, gradient, {-1, g.shape(gradient).back()});
  ValueId joined = g.add1(op::matmul, {gradient, rewriter_.map(found.input)}, first.attrs);
  if (found.is_widened) joined = cast(g, joined, DType::kF32);
  int64_t begin = 0;
  for (int product : found.weight_products) {
    int64_t rows = graph_.shape(node(product).outputs[0])[0];
    rewriter_.replace(node(product).outputs[0], slice(g, joined, 0, begin, rows));
    begin += rows;
  }
}

}  // namespace tokamak
