#include "passes/float8_products.h"

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
#include "passes/product_use.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace tokamak {
namespace {

constexpr double kLeast = 1e-30;    // of a scale: that of a matrix of zeros is no number
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
      : graph_(graph), target_(target), rewriter_(graph), loss_gradient_(find_loss_gradient(graph)) {}

  bool run() {
    choose();
    for (size_t n = 0; n < graph_.nodes().size() && !chosen_.empty(); ++n) {
      const Node& node = graph_.nodes()[n];
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

 private:
  void choose() {
    std::vector<ProductUse> uses = find_product_uses(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (!is_product(node) || !takes(node, uses[n])) continue;
      chosen_[int(n)] = uses[n];
      const Node* norm = is_gradient(node, uses[n]) ? nullptr : norm_of(node.inputs[0]);
      sources_[norm ? norm->outputs[0] : node.inputs[0]] = !norm;
    }
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

  // Seconds of the product in bf16 against those in eight bits with its casts.
  bool pays(const MatmulDims& d) const {
    double flops = 2 * double(d.m) * double(d.n) * double(d.k);
    double saved =
        flops / product_rate(target_, NumberFormat::kBf16) - flops / product_rate(target_, NumberFormat::kF8E4M3);
    double bytes = double(d.m) * double(d.k) + kWeightBytes * double(d.n) * double(d.k);
    return saved > bytes / target_.memory_bandwidth + kLaunches * target_.launch_seconds;
  }

  void convert(const Node& node, ProductUse use) {
    bool gradient = is_gradient(node, use);
    Scaled x = gradient ? scaled_gradient(node.inputs[0]) : scaled_activation(node.inputs[0]),
           weight = scaled_weight(node);
    GraphBuilder& g = rewriter_.in_place_of(node);
    std::vector<ValueId> inputs = rewriter_.map(node.inputs);
    Attrs attrs = node.attrs;
    if (node.op == &op::matmul) {
      inputs = {x.values, weight.values, x.scale, weight.scale};
      attrs.set("trans_b", true);
      set_formats(attrs, {gradient ? NumberFormat::kF8E5M2 : NumberFormat::kF8E4M3, NumberFormat::kF8E4M3, DType::kF32,
                          DType::kBF16});
    } else {
      Scale dlogits = scale_of(g, largest(g, inputs[3]), largest_float8(DType::kF8E5M2));
      inputs.insert(inputs.end(), {x.values, weight.values, x.scale, weight.scale, transpose(g, weight.values, {1, 0}),
                                   dlogits.scale, dlogits.inverse});
    }
    std::vector<ValueId> made = g.add(*node.op, inputs, attrs);
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
  // No element is larger than the bound, which becomes the largest number.
  static Scaled scaled(GraphBuilder& g, ValueId values, ValueId bound) {
    return scaled(g, values, scale_of(g, bound, largest_float8(DType::kF8E4M3)), DType::kF8E4M3);
  }

  Scaled scaled_gradient(ValueId value) {
    if (auto known = gradients_.find(value); known != gradients_.end()) return known->second;
    GraphBuilder& g = rewriter_.in_place_of(*maker_of(value));
    if (!unit_) unit_ = scale_of(g, largest(g, rewriter_.map(loss_gradient_)), kGradientUnit);
    return gradients_[value] = scaled(g, rewriter_.map(value), *unit_, DType::kF8E5M2);
  }

  // In the phase of the norm, whose kernel this becomes part of.
  Scaled scaled_activation(ValueId value) {
    if (auto known = activations_.find(value); known != activations_.end()) return known->second;
    const Node& maker = graph_.nodes()[size_t(graph_.producer(value))];
    Scaled made = is_norm(maker) ? Scaled() : scaled_activation(maker.inputs[0]);
    GraphBuilder& g = rewriter_.in_place_of(maker);
    if (is_norm(maker))
      made = scaled(g, rewriter_.map(value), bound_of(g, maker));
    else
      made.values = reshape(g, made.values, graph_.shape(value));
    return activations_[value] = made;
  }

  ValueId bound_of(GraphBuilder& g, const Node& norm) const {
    ValueId bound = constant(g, std::sqrt(double(graph_.shape(norm.outputs[0]).back())));
    if (norm.inputs.size() > 1) bound = mul(g, bound, largest(g, rewriter_.map(norm.inputs[1])));
    if (norm.inputs.size() > 2) bound = add(g, bound, largest(g, rewriter_.map(norm.inputs[2])));
    return bound;
  }

  Scaled scaled_weight(const Node& node) {
    GraphBuilder& g = rewriter_.in_place_of(node);
    ValueId weight = rewriter_.map(node.inputs[1]);
    bool turned = !has_transposed_weight(node);
    if (auto known = weights_.find({node.inputs[1], turned}); known != weights_.end()) return known->second;
    Scaled made = scaled(g, weight, largest(g, weight));
    if (turned) made.values = transpose(g, made.values, {1, 0});
    return weights_[{node.inputs[1], turned}] = made;
  }

  const Graph& graph_;
  const Target& target_;
  Rewriter rewriter_;
  ValueId loss_gradient_;                               // of the old graph
  std::optional<Scale> unit_;                           // of gradients
  std::map<int, ProductUse> chosen_;                    // by node
  std::map<ValueId, bool> sources_;                     // of left operands, and whether it is a gradient
  std::map<ValueId, Scaled> activations_, gradients_;   // of values of the old graph
  std::map<std::pair<ValueId, bool>, Scaled> weights_;  // and whether it is transposed
};

}  // namespace

bool float8_products(Graph& graph, const PassContext& context) {
  Float8Products products(graph, context.target);
  if (!products.run()) return false;
  graph = products.finish();
  return true;
}

}  // namespace tokamak
