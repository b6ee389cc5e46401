#include "passes/float8_products.h"

#include "cost/price.h"
#include "graph/rewriter.h"
#include "ops/classifier.h"
#include "ops/cross_entropy.h"
#include "ops/float8.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/matmul_dims.h"
#include "ops/matmul_formats.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/rms_norm.h"
#include "passes/eliminate_dead_code.h"
#include "passes/product_use.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace tokamak {
namespace {

constexpr double kLeast = 1e-30;    // of a scale: that of a matrix of zeros is no number
constexpr double kLargest = 448;    // e4m3: what no element exceeds becomes this
constexpr int64_t kMultiple = 16;   // of all sizes, as the tensor cores and the library want them
constexpr double kLaunches = 4;     // kernels that a product's scales and casts are
constexpr double kWeightBytes = 6;  // of each element: read for the largest and for the cast, written, transposed

// What the largest gradient of a row's loss becomes. The gradients of the residual stream are 1 to 10^-5 times that,
// and e5m2 has numbers from 2^-14 to 57344.
constexpr double kGradientUnit = 256;

bool is_norm(const Node& node) { return node.op == &op::layer_norm || node.op == &op::rms_norm; }

// What values are multiplied by where they are used, and before they are rounded.
struct Scale {
  ValueId scale = kNoValue, inverse = kNoValue;
};

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

bool is_norm_gradient(const Node& node) { return node.op == &op::layer_norm_grad || node.op == &op::rms_norm_grad; }

// The gradient of each row's loss, in a graph that has one; else kNoValue.
ValueId find_loss_gradient(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == &op::classifier || node.op == &op::cross_entropy_grad) return node.inputs[3];
  return kNoValue;
}

class Float8Products {
 public:
  Float8Products(const Graph& graph, const Target& target)
      : graph_(graph), target_(target), users_(find_users(graph)), escaping_(find_escaping(graph)), rewriter_(graph),
        loss_gradient_(find_loss_gradient(graph)) {}

  bool run() {
    choose();
    for (size_t n = 0; n < graph_.nodes().size() && !chosen_.empty(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (made_early_.contains(int(n))) continue;
      if (auto use = chosen_.find(int(n)); use != chosen_.end())
        convert(node, use->second);
      else
        rewriter_.copy(node);
      // At once, before others read it: so it becomes part of the kernel that makes it.
      for (ValueId output : node.outputs)
        if (auto gradient = sources_.find(output); gradient != sources_.end())
          gradient->second ? scaled_gradient(output) : scaled_activation(output);
    }
    return !chosen_.empty();
  }

  Graph finish() { return rewriter_.finish(); }

  std::vector<std::optional<Float8Choice>> choices() {
    choose();
    std::vector<ProductUse> uses = find_product_uses(graph_);
    std::vector<std::optional<Float8Choice>> choices;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      std::optional<Float8Choice>& choice = choices.emplace_back();
      if (is_product(node)) choice = chosen_.contains(int(n)) ? Float8Choice::kEightBits : why_left(node, uses[n]);
    }
    return choices;
  }

 private:
  Float8Choice why_left(const Node& node, ProductUse use) const {
    if (node.attrs.find("result")) return Float8Choice::kNumbersSaid;
    MatmulDims d = dims(node);
    if (d.m % kMultiple != 0 || d.n % kMultiple != 0 || d.k % kMultiple != 0) return Float8Choice::kSizes;
    bool may_pay = use == ProductUse::kWeightGradient ? pays_for_weight(d) : pays(d);
    return may_pay ? Float8Choice::kRangeUnknown : Float8Choice::kCastsTakeMore;
  }

  void choose() {
    choose_known();
    for (const Node& node : graph_.nodes()) {
      if (node.op == &op::gelu) choose_hidden(node.outputs[0], product_before(node.inputs[0]));
      if (node.op == &op::gelu_grad) choose_hidden(node.outputs[0], product_before(node.inputs[1]));
    }
  }

  // Products of what norms make, and of the residual stream's gradient.
  void choose_known() {
    std::vector<ProductUse> uses = find_product_uses(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (!is_product(node) || !takes(node, uses[n])) continue;
      chosen_[int(n)] = uses[n];
      const Node* norm = is_gradient(node, uses[n]) ? nullptr : norm_of(node.inputs[0]);
      sources_[norm ? norm->outputs[0] : node.inputs[0]] = !norm;
    }
  }

  // The product that a function is applied to, perhaps with a bias; -1: there is none.
  int product_before(ValueId value) const {
    int n = graph_.producer(value);
    if (n >= 0 && graph_.nodes()[size_t(n)].op == &op::add) n = graph_.producer(graph_.nodes()[size_t(n)].inputs[0]);
    return n >= 0 && graph_.nodes()[size_t(n)].op == &op::matmul ? n : -1;
  }

  // GELU of a chosen product, or its gradient: where all products that read it can have eight bits, nothing else is
  // stored of it.
  void choose_hidden(ValueId value, int product) {
    if (product < 0 || !chosen_.contains(product)) return;
    bool gradient = is_gradient(graph_.nodes()[size_t(product)], chosen_.at(product));
    if (!gradient && !norm_of(graph_.nodes()[size_t(product)].inputs[0])) return;
    std::map<int, ProductUse> found;
    if (!find_narrow_readers(value, value, gradient, found) || found.empty()) return;
    chosen_.insert(found.begin(), found.end());
    sources_[value] = gradient;
    if (!gradient) hidden_[product] = value;
  }

  // Of `value` or a view of it. False where one needs it as it is; sums of a gradient are part of its product.
  bool find_narrow_readers(ValueId hidden, ValueId value, bool gradient, std::map<int, ProductUse>& found) const {
    for (int n : users_[size_t(value)]) {
      const Node& reader = graph_.nodes()[size_t(n)];
      bool sums = reader.op == &op::cast || reader.op == &op::reduce_sum;
      if (reader.op == &op::reshape) {
        if (!find_narrow_readers(hidden, reader.outputs[0], gradient, found)) return false;
      } else if (gradient && sums) {
        continue;
      } else if (reader.op == &op::matmul && takes_hidden(reader, value, gradient)) {
        found[n] = reader.attrs.get_bool("trans_a") ? ProductUse::kWeightGradient
                   : gradient                       ? ProductUse::kInputGradient
                                                    : ProductUse::kForward;
      } else {
        return false;
      }
    }
    return !escaping_[size_t(value)];
  }

  bool takes_hidden(const Node& node, ValueId value, bool gradient) const {
    const ValueType &a = graph_.type(node.inputs[0]), &b = graph_.type(node.inputs[1]);
    if (node.inputs.size() != 2 || a.dtype != DType::kBF16 || b.dtype != DType::kBF16 || b.shape.size() != 2)
      return false;
    if (node.inputs[0] == node.inputs[1] || node.attrs.find("result")) return false;  // whose numbers are said
    MatmulDims d = dims(node);
    if (d.m % kMultiple != 0 || d.n % kMultiple != 0 || d.k % kMultiple != 0) return false;
    if (!node.attrs.get_bool("trans_a")) return node.inputs[0] == value && pays(d);
    if (node.attrs.get_bool("trans_b") || !pays_for_weight(d)) return false;
    // The other operand has eight bits for other products already.
    ValueId other = origin(node.inputs[gradient ? 0 : 1]);
    auto source = sources_.find(other);
    return node.inputs[gradient ? 1 : 0] == value && source != sources_.end() && source->second == !gradient;
  }

  // The value that views show.
  ValueId origin(ValueId value) const {
    const Node* maker = maker_of(value);
    return maker && maker->op == &op::reshape ? origin(maker->inputs[0]) : value;
  }

  static bool is_gradient(const Node& node, ProductUse use) {
    return node.op == &op::matmul && use == ProductUse::kInputGradient;
  }

  // The norm that makes a value, through views; null where it is something else.
  const Node* norm_of(ValueId value) const {
    const Node* maker = maker_of(value);
    if (!maker) return nullptr;
    if (maker->op == &op::reshape) return norm_of(maker->inputs[0]);
    return is_norm(*maker) && maker->outputs[0] == value ? maker : nullptr;
  }

  static bool is_product(const Node& node) { return node.op == &op::matmul || node.op == &op::classifier; }

  const Node* maker_of(ValueId value) const {
    int maker = graph_.producer(value);
    return maker < 0 ? nullptr : &graph_.nodes()[size_t(maker)];
  }

  // Whether a value is the residual stream's gradient as a norm's kernel leaves it: what the norm's branch adds to it.
  bool is_stream_gradient(ValueId value) const {
    const Node* maker = maker_of(value);
    if (!maker) return false;
    if (is_norm_gradient(*maker)) return true;
    if (maker->op != &op::add) return false;
    return std::ranges::any_of(maker->inputs, [&](ValueId input) {
      const Node* branch = maker_of(input);
      return branch && is_norm_gradient(*branch);
    });
  }

  // Whether the left operand is one whose range is known.
  bool has_range(const Node& node, ProductUse use) const {
    if (node.op == &op::classifier || use == ProductUse::kForward) return norm_of(node.inputs[0]);
    return use == ProductUse::kInputGradient && loss_gradient_ != kNoValue && is_stream_gradient(node.inputs[0]);
  }

  static bool has_transposed_weight(const Node& node) {
    return node.op == &op::classifier || node.attrs.get_bool("trans_b");
  }

  // Sizes of the product, or of the logits.
  MatmulDims dims(const Node& node) const {
    const ValueType &x = graph_.type(node.inputs[0]), &weight = graph_.type(node.inputs[1]);
    if (node.op == &op::matmul) return matmul_dims({*node.op, {x, weight}, node.attrs});
    return {1, x.shape[0], weight.shape[0], x.shape[1], {}};
  }

  bool takes(const Node& node, ProductUse use) const {
    if (node.inputs.size() > (node.op == &op::matmul ? 2 : 4) || !has_range(node, use)) return false;
    if (graph_.dtype(node.inputs[0]) != DType::kBF16 || graph_.dtype(node.inputs[1]) != DType::kBF16) return false;
    if (graph_.shape(node.inputs[1]).size() != 2) return false;
    if (node.op == &op::matmul && node.attrs.get_bool("trans_a")) return false;
    MatmulDims d = dims(node);
    return d.m % kMultiple == 0 && d.n % kMultiple == 0 && d.k % kMultiple == 0 && pays(d);
  }

  bool pays(const MatmulDims& d) const {
    return saves_more(d, double(d.m) * double(d.k) + kWeightBytes * double(d.n) * double(d.k));
  }

  // The same of a weight's gradient, whose smaller operand is transposed.
  bool pays_for_weight(const MatmulDims& d) const {
    return saves_more(d, 2 * double(std::min(d.m, d.n)) * double(d.k));
  }

  // The product in bf16 against that in eight bits, with casts that move so many bytes.
  bool saves_more(const MatmulDims& d, double bytes) const {
    double flops = 2 * double(d.m) * double(d.n) * double(d.k);
    return product_seconds(flops, NumberFormat::kBf16, target_) >
           product_seconds(flops, NumberFormat::kF8E4M3, target_) + copies_seconds(bytes, kLaunches, target_);
  }

  // a^T b as a product whose one operand is transposed: the one that is not hidden.
  void convert_weight_gradient(const Node& node) {
    bool left = sources_.contains(origin(node.inputs[0])) && !sources_.at(origin(node.inputs[0])) &&
                !norm_of(node.inputs[0]);  // what is hidden
    Scaled a = scaled_source(node.inputs[0]), b = scaled_source(node.inputs[1]);
    GraphBuilder& g = rewriter_.in_place_of(node);
    (left ? b : a).values = transposed(g, left ? b.values : a.values);
    Attrs attrs = node.attrs;
    attrs.set("trans_a", left);
    attrs.set("trans_b", left);
    set_formats(attrs, {NumberFormat::kF8E4M3, NumberFormat::kF8E5M2, DType::kF32, graph_.dtype(node.outputs[0])});
    rewriter_.replace(node.outputs, g.add(*node.op, {a.values, b.values, a.scale, b.scale}, attrs));
  }

  static ValueId transposed(GraphBuilder& g, ValueId matrix) { return transpose(g, matrix, {1, 0}); }

  void convert(const Node& node, ProductUse use) {
    if (use == ProductUse::kWeightGradient && node.op == &op::matmul) return convert_weight_gradient(node);
    bool gradient = is_gradient(node, use);
    Scaled x = scaled_source(node.inputs[0]), weight = scaled_weight(node);
    GraphBuilder& g = rewriter_.in_place_of(node);
    // Before the product, of which the kernel also writes this.
    auto hidden = hidden_.find(graph_.producer(node.outputs[0]));
    if (hidden != hidden_.end()) bounds_[hidden->second] = scale_of(g, hidden_bound(g, node, hidden->second), kLargest);
    ValueIds inputs = rewriter_.map(node.inputs);
    Attrs attrs = node.attrs;
    if (node.op == &op::matmul) {
      inputs = {x.values, weight.values, x.scale, weight.scale};
      attrs.set("trans_b", true);
      set_formats(attrs, {gradient ? NumberFormat::kF8E5M2 : NumberFormat::kF8E4M3, NumberFormat::kF8E4M3, DType::kF32,
                          DType::kBF16});
    } else {
      Scale dlogits = scale_of(g, largest(g, inputs[3]), largest_float8(DType::kF8E5M2));
      inputs.insert(inputs.end(), {x.values, weight.values, x.scale, weight.scale, transposed(g, weight.values),
                                   dlogits.scale, dlogits.inverse});
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

  // What is read of a source or a view of it.
  Scaled scaled_source(ValueId value) {
    ValueId from = origin(value);
    Scaled made = sources_.at(from) ? scaled_gradient(from) : scaled_activation(from);
    if (from == value) return made;
    made.values = reshape(rewriter_.in_place_of(*maker_of(value)), made.values, graph_.shape(value));
    return made;
  }

  Scaled scaled_gradient(ValueId value) {
    if (auto known = gradients_.find(value); known != gradients_.end()) return known->second;
    GraphBuilder& g = rewriter_.in_place_of(*maker_of(value));
    if (!unit_) unit_ = scale_of(g, largest(g, rewriter_.map(loss_gradient_)), kGradientUnit);
    return gradients_[value] = scaled(g, rewriter_.map(value), *unit_, DType::kF8E5M2);
  }

  // In the phase of the maker, whose kernel this becomes part of.
  Scaled scaled_activation(ValueId value) {
    if (auto known = activations_.find(value); known != activations_.end()) return known->second;
    const Node& maker = *maker_of(value);
    GraphBuilder& g = rewriter_.in_place_of(maker);
    if (!bounds_.contains(value)) bounds_[value] = scale_of(g, bound_of(g, maker), kLargest);
    return activations_[value] = scaled(g, rewriter_.map(value), bounds_.at(value), DType::kF8E4M3);
  }

  ValueId bound_of(GraphBuilder& g, const Node& norm) const {
    ValueId bound = constant(g, std::sqrt(double(graph_.shape(norm.outputs[0]).back())));
    if (norm.inputs.size() > 1) bound = mul(g, bound, largest(g, rewriter_.map(norm.inputs[1])));
    if (norm.inputs.size() > 2) bound = add(g, bound, largest(g, rewriter_.map(norm.inputs[2])));
    return bound;
  }

  // Of GELU of a norm's product: no element is larger than the longest row times the longest column (Cauchy, Schwarz),
  // and the bias. Rounding to eight bits makes both longer by 1/16 at most.
  ValueId hidden_bound(GraphBuilder& g, const Node& product, ValueId hidden) {
    constexpr double kRounding = 1.14;
    const Node& norm = *norm_of(product.inputs[0]);
    ValueId width = constant(g, kRounding * std::sqrt(double(graph_.shape(norm.outputs[0]).back())));
    ValueId row = norm.inputs.size() > 1 ? mul(g, width, largest(g, rewriter_.map(norm.inputs[1]))) : width;
    if (norm.inputs.size() > 2) row = add(g, row, mul(g, width, largest(g, rewriter_.map(norm.inputs[2]))));
    ValueId weight = cast(g, rewriter_.map(product.inputs[1]), DType::kF32);
    int64_t along = product.attrs.get_bool("trans_b") ? 1 : 0;
    ValueId squares = reduce_sum(g, mul(g, weight, weight), {along}, true);
    ValueId bound = mul(g, row, sqrt(g, reduce_max(g, squares, {0, 1}, false)));
    const Node& argument = *maker_of(maker_of(hidden)->inputs[0]);
    if (argument.op != &op::add) return bound;
    const Node* low = maker_of(argument.inputs[1]);  // may stand behind the product
    ValueId bias = low && low->op == &op::cast ? low->inputs[0] : argument.inputs[1];
    make_early(bias, graph_.producer(product.outputs[0]));
    return add(g, bound, mul(g, largest(g, rewriter_.map(bias)), constant(g, kRounding)));
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
  Scaled scaled_weight(const Node& node) {
    GraphBuilder& g = rewriter_.in_place_of(node);
    ValueId weight = node.inputs[1];
    if (!weights_.contains(weight)) {
      ValueId values = rewriter_.map(weight);
      weights_[weight] = scaled(g, values, scale_of(g, largest(g, values), kLargest), DType::kF8E4M3);
    }
    Scaled made = weights_.at(weight);
    if (has_transposed_weight(node)) return made;
    if (!turned_.contains(weight)) turned_[weight] = transposed(g, made.values);
    return {turned_.at(weight), made.scale};
  }

  const Graph& graph_;
  const Target& target_;
  Users users_;
  std::vector<bool> escaping_;
  Rewriter rewriter_;
  ValueId loss_gradient_;                              // of the old graph
  std::optional<Scale> unit_;                          // of gradients
  std::map<int, ProductUse> chosen_;                   // by node
  std::map<ValueId, bool> sources_;                    // of left operands, and whether it is a gradient
  std::map<int, ValueId> hidden_;                      // by product: GELU of it
  std::set<int> made_early_;                           // nodes that stand earlier in the new graph
  std::map<ValueId, Scale> bounds_;                    // of activations
  std::map<ValueId, Scaled> activations_, gradients_;  // of values of the old graph
  std::map<ValueId, Scaled> weights_;
  std::map<ValueId, ValueId> turned_;  // weights of eight bits, transposed
};

}  // namespace

std::vector<std::optional<Float8Choice>> float8_choices(const Graph& graph, const PassContext& context) {
  return Float8Products(graph, context.target).choices();
}

bool float8_products(Graph& graph, const PassContext& context) {
  Float8Products products(graph, context.target);
  if (!products.run()) return false;
  graph = products.finish();
  eliminate_dead_code(graph, context);  // views of what has eight bits now would count as readers
  return true;
}

}  // namespace tokamak
