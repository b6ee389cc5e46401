#include "passes/float8_products.h"

#include "graph/rewriter.h"
#include "ops/classifier.h"
#include "ops/cross_entropy.h"
#include "ops/float8.h"
#include "ops/float8_scales.h"
#include "ops/float8_weights.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/matmul_formats.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/eliminate_dead_code.h"
#include "passes/float8_choice.h"

#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace tokamak {
namespace {

constexpr double kLeast = 1e-30;  // of a scale: that of a matrix of zeros is no number
constexpr double kLargest = 448;  // e4m3: what no element exceeds becomes this

// What the largest gradient of a row's loss becomes. The gradients of the residual stream are 1 to 10^-5 times that,
// and e5m2 has numbers from 2^-14 to 57344.
constexpr double kGradientUnit = 256;

using Scale = Float8Scale;

// Values of eight bits, and what they have to be multiplied by.
struct Scaled {
  ValueId values = kNoValue, scale = kNoValue;
};

ValueId magnitude(GraphBuilder& g, ValueId x) {
  ValueId wide = cast(g, x, DType::kF32);
  return maximum(g, wide, neg(g, wide));
}

ValueId largest(GraphBuilder& g, ValueId x) {
  std::vector<int64_t> dims(g.shape(x).size());
  std::iota(dims.begin(), dims.end(), 0);
  return reduce_max(g, magnitude(g, x), dims, false);
}

// The gradient of each row's loss, in a graph that has one; else kNoValue.
ValueId find_loss_gradient(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == &op::classifier || node.op == &op::cross_entropy_grad) return node.inputs[3];
  return kNoValue;
}

class Float8Products {
 public:
  Float8Products(const Graph& graph, const PassContext& context)
      : graph_(graph), uses_(choose_float8(graph, context)), loss_weight_(context.loss_weight), rewriter_(graph),
        loss_gradient_(find_loss_gradient(graph)) {
    for (const auto& [n, use] : uses_.products) {
      const Node& node = graph.nodes()[size_t(n)];
      if (use == ProductUse::kWeightGradient && node.op == &op::matmul) continue;  // of two activations
      StoredCopies& copies = stored_[node.inputs[1]];
      copies.plain |= has_transposed_weight(node);
      copies.turned |= node.op == &op::classifier || !has_transposed_weight(node);
      copies.longest |= uses_.hidden.contains(n) && !has_transposed_weight(node);
    }
  }

  bool run() {
    for (size_t n = 0; n < graph_.nodes().size() && !uses_.products.empty(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (made_early_.contains(int(n)) || makes_narrow(node)) continue;
      if (auto use = uses_.products.find(int(n)); use != uses_.products.end())
        convert(node, use->second);
      else
        rewriter_.copy(node);
      // At once, before others read it: so it becomes part of the kernel that makes it.
      for (ValueId output : node.outputs)
        if (auto gradient = uses_.sources.find(output); gradient != uses_.sources.end())
          gradient->second ? scaled_gradient(output) : scaled_activation(output);
    }
    return !uses_.products.empty();
  }

  Graph finish() { return rewriter_.finish(); }

 private:
  // What exists in eight bits alone is made in their place.
  bool makes_narrow(const Node& node) {
    if (node.outputs.empty() || !uses_.narrow.contains(node.outputs[0])) return false;
    scaled_source(node.outputs[0]);
    return true;
  }

  static bool has_transposed_weight(const Node& node) {
    return node.op == &op::classifier || node.attrs.get_bool("trans_b");
  }

  // a^T b as a product of which the smaller operand is transposed before.
  void convert_weight_gradient(const Node& node) {
    Scaled a = scaled_source(node.inputs[0]), b = scaled_source(node.inputs[1]);
    GraphBuilder& g = rewriter_.in_place_of(node);
    bool turns_b = g.shape(b.values).back() < g.shape(a.values).back();
    ValueId& smaller = turns_b ? b.values : a.values;
    smaller = transposed(g, smaller);
    Attrs attrs = node.attrs;
    attrs.set("trans_a", turns_b);
    attrs.set("trans_b", turns_b);
    set_formats(attrs, {format_of(g.type(a.values).dtype), format_of(g.type(b.values).dtype), DType::kF32,
                        graph_.dtype(node.outputs[0])});
    rewriter_.replace(node.outputs, g.add(*node.op, {a.values, b.values, a.scale, b.scale}, attrs));
  }

  // Several products may read it.
  ValueId transposed(GraphBuilder& g, ValueId matrix) {
    if (!turned_.contains(matrix)) turned_[matrix] = transpose(g, matrix, {1, 0});
    return turned_.at(matrix);
  }

  void convert(const Node& node, ProductUse use) {
    if (use == ProductUse::kWeightGradient && node.op == &op::matmul) return convert_weight_gradient(node);
    bool gradient = reads_gradient(node, use);
    Scaled x = scaled_source(node.inputs[0]);
    const Float8Weight& weight = scaled_weight(node);
    GraphBuilder& g = rewriter_.in_place_of(node);
    // Before the product, of which the kernel also writes this.
    auto hidden = uses_.hidden.find(graph_.producer(node.outputs[0]));
    if (hidden != uses_.hidden.end()) bounds_[hidden->second] = hidden_scale(g, node, hidden->second);
    ValueIds inputs;
    Attrs attrs = node.attrs;
    if (node.op == &op::matmul) {
      inputs = {x.values, has_transposed_weight(node) ? weight.plain : weight.turned, x.scale, weight.scale};
      attrs.set("trans_b", true);
      set_formats(attrs, {gradient ? NumberFormat::kF8E5M2 : NumberFormat::kF8E4M3, NumberFormat::kF8E4M3, DType::kF32,
                          DType::kBF16});
    } else {  // which also reads its operands as they are
      inputs = rewriter_.map(node.inputs);
      Scale dlogits = scale_of(g, largest(g, inputs[3]), largest_float8(DType::kF8E5M2));
      inputs.insert(inputs.end(),
                    {x.values, weight.plain, x.scale, weight.scale, weight.turned, dlogits.scale, dlogits.inverse});
    }
    ValueIds made = g.add(*node.op, inputs, attrs);
    made.resize(node.outputs.size());  // nothing reads what the classifier has more
    rewriter_.replace(node.outputs, made);
  }

  // The scale as which `bound` becomes `top`.
  static Scale scale_of(GraphBuilder& g, ValueId bound, double top) {
    ValueId most = constant(g, top), limit = maximum(g, bound, constant(g, kLeast));
    return {div(g, limit, most), div(g, most, limit)};
  }
  static Scaled scaled(GraphBuilder& g, ValueId values, const Scale& scale, DType type) {
    return {cast(g, mul(g, cast(g, values, DType::kF32), scale.inverse), type), scale.scale};
  }

  // What is read of a source, a view of it, or what ranks gather of it.
  Scaled scaled_source(ValueId value) {
    if (auto source = uses_.sources.find(value); source != uses_.sources.end())
      return source->second ? scaled_gradient(value) : scaled_activation(value);
    if (auto known = shown_.find(value); known != shown_.end()) return known->second;
    const Node& maker = *maker_of(graph_, value);
    Scaled made = scaled_source(maker.inputs[0]);
    GraphBuilder& g = rewriter_.in_place_of(maker);
    return shown_[value] = {g.add(*maker.op, {made.values}, maker.attrs)[0], made.scale};
  }

  // The largest gradient of a row's loss.
  ValueId row_gradient(GraphBuilder& g) {
    if (loss_gradient_ != kNoValue) return largest(g, rewriter_.map(loss_gradient_));
    if (loss_weight_ > 0) return constant(g, loss_weight_);
    ValueId weight = graph_.find_argument("loss_weight");
    return weight == kNoValue ? g.input("loss_weight", {DType::kF32, {}}) : rewriter_.map(weight);
  }

  Scaled scaled_gradient(ValueId value) {
    if (auto known = gradients_.find(value); known != gradients_.end()) return known->second;
    const Node* maker = maker_of(graph_, value);  // none: another stage is
    GraphBuilder& g = maker ? rewriter_.in_place_of(*maker) : rewriter_.in_phase(Phase::kBackward);
    if (!unit_) unit_ = scale_of(g, row_gradient(g), kGradientUnit);
    return gradients_[value] = scaled(g, rewriter_.map(value), *unit_, DType::kF8E5M2);
  }

  // In the phase of the maker, whose kernel this becomes part of.
  Scaled scaled_activation(ValueId value) {
    if (auto known = activations_.find(value); known != activations_.end()) return known->second;
    const Node& maker = *maker_of(graph_, value);
    GraphBuilder& g = rewriter_.in_place_of(maker);
    if (!bounds_.contains(value)) bounds_[value] = norm_scale(g, maker);
    return activations_[value] = scaled(g, rewriter_.map(value), bounds_.at(value), DType::kF8E4M3);
  }

  Float8Bound bound_of(const Node& norm) const {
    Float8Bound bound{.width = graph_.shape(norm.outputs[0]).back()};
    if (norm.inputs.size() > 1) bound.gain = rewriter_.map(norm.inputs[1]);
    if (norm.inputs.size() > 2) bound.bias = rewriter_.map(norm.inputs[2]);
    return bound;
  }

  // A norm without parameters has a bound that is known.
  Scale norm_scale(GraphBuilder& g, const Node& norm) const {
    Float8Bound bound = bound_of(norm);
    if (bound.gain == kNoValue) return scale_of(g, constant(g, float8_row_length(bound)), kLargest);
    return float8_scales(g, {&bound, 1})[0];
  }

  // Of GELU of a norm's product.
  Scale hidden_scale(GraphBuilder& g, const Node& product, ValueId hidden) {
    Float8Bound bound = bound_of(*norm_behind(graph_, product.inputs[0]));
    bound.column = longest_column(g, product);
    const Node& argument = *maker_of(graph_, maker_of(graph_, hidden)->inputs[0]);
    if (argument.op == &op::add) {
      ValueId bias = argument.inputs[1];  // may stand behind the product
      make_early(bias, graph_.producer(product.outputs[0]));
      bound.column_bias = rewriter_.map(bias);
    }
    return float8_scales(g, {&bound, 1})[0];
  }

  // Of the matrix that the product has on its right.
  ValueId longest_column(GraphBuilder& g, const Node& product) const {
    ValueId longest = weights_.at(product.inputs[1]).longest;
    if (longest != kNoValue) return longest;
    ValueId weight = cast(g, rewriter_.map(product.inputs[1]), DType::kF32);
    ValueId squares = reduce_sum(g, mul(g, weight, weight), {1}, true);
    return sqrt(g, reduce_max(g, squares, {0, 1}, false));
  }

  // Of what a value is made of, all that stands behind node `before`: a bias that ZeRO cuts is gathered behind it.
  void make_early(ValueId value, int before) {
    int maker = graph_.producer(value);
    if (maker <= before || !made_early_.insert(maker).second) return;
    const Node& node = graph_.nodes()[size_t(maker)];
    for (ValueId input : node.inputs) make_early(input, before);
    rewriter_.copy(node);
  }

  // With its sums along rows; the backward pass reads the other way what the forward pass has cast.
  const Float8Weight& scaled_weight(const Node& node) {
    ValueId weight = node.inputs[1];
    if (!weights_.contains(weight))
      weights_[weight] = float8_weights(rewriter_.in_place_of(node), {rewriter_.map(weight)}, {&stored_[weight], 1})[0];
    return weights_.at(weight);
  }

  const Graph& graph_;
  Float8Uses uses_;
  double loss_weight_;
  Rewriter rewriter_;
  ValueId loss_gradient_;                                      // of the old graph
  std::optional<Scale> unit_;                                  // of gradients
  std::set<int> made_early_;                                   // nodes that stand earlier in the new graph
  std::map<ValueId, Scale> bounds_;                            // of activations
  std::map<ValueId, Scaled> activations_, gradients_, shown_;  // of values of the old graph
  std::map<ValueId, StoredCopies> stored_;                     // of weights
  std::map<ValueId, Float8Weight> weights_;
  std::map<ValueId, ValueId> turned_;  // what has eight bits, transposed: of the new graph
};

}  // namespace

bool float8_products(Graph& graph, const PassContext& context) {
  Float8Products products(graph, context);
  if (!products.run()) return false;
  graph = products.finish();
  eliminate_dead_code(graph, context);  // views of what has eight bits now would count as readers
  return true;
}

}  // namespace tokamak
