#include "passes/float8_choice.h"

#include "cost/price.h"
#include "ops/attention.h"
#include "ops/classifier.h"
#include "ops/collective.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_dims.h"
#include "ops/matmul_form.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/packed_rotary.h"
#include "ops/parameter_kind.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/rms_norm.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr int64_t kMultiple = 16;   // of all sizes, as the tensor cores and the library want them
constexpr double kLaunches = 4;     // kernels that a product's scales and casts are
constexpr double kWeightBytes = 6;  // of each element: read for the largest and for the cast, written, transposed

bool is_norm(const Node& node) { return node.op == &op::layer_norm || node.op == &op::rms_norm; }
bool is_norm_gradient(const Node& node) { return node.op == &op::layer_norm_grad || node.op == &op::rms_norm_grad; }
bool is_gather(const Node& node) { return node.op == &op::all_gather && node.inputs.size() == 1; }
bool is_product(const Node& node) { return node.op == &op::matmul || node.op == &op::classifier; }

// What was rounded to 16 bits.
ValueId wide_origin_of(const Graph& graph, ValueId value) {
  ValueId made = origin_of(graph, value);
  const Node* maker = maker_of(graph, made);
  return maker && maker->op == &op::cast ? origin_of(graph, maker->inputs[0]) : made;
}

// Sizes of a matmul, or of the logits.
MatmulDims product_dims(const Graph& graph, const Node& node) {
  const ValueType &x = graph.type(node.inputs[0]), &weight = graph.type(node.inputs[1]);
  if (node.op == &op::matmul) return matmul_dims({*node.op, {x, weight}, node.attrs});
  return {1, x.shape[0], weight.shape[0], x.shape[1], {}};
}

class Float8Chooser {
 public:
  Float8Chooser(const Graph& graph, const PassContext& context)
      : graph_(graph), target_(context.target), refused_(context.tuning.slow_forms),
        excepted_(context.options.fp8_except.begin(), context.options.fp8_except.end()), users_(find_users(graph)),
        escaping_(find_escaping(graph)), product_uses_(find_product_uses(graph)) {
    if (!excepted_.empty()) find_excepted();
    choose_known();
    for (const Node& node : graph_.nodes()) {
      if (node.op == &op::gelu) choose_hidden(node.outputs[0], product_before(node.inputs[0]));
      if (passes_gradient_on(node)) choose_hidden(node.outputs[0], gradient_before(node.outputs[0]));
      if (context.options.fp8_attention) choose_of_attention(node);
    }
    place_gathered();
  }

  Float8Uses take() { return std::move(uses_); }

  std::vector<std::optional<Float8Choice>> choices() const {
    std::vector<std::optional<Float8Choice>> choices;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      std::optional<Float8Choice>& choice = choices.emplace_back();
      if (!is_product(node)) continue;
      choice = uses_.products.contains(int(n)) ? Float8Choice::kEightBits : why_left(node, product_uses_[n]);
    }
    return choices;
  }

 private:
  Float8Choice why_left(const Node& node, ProductUse use) const {
    if (node.attrs.find("result")) return Float8Choice::kNumbersSaid;
    MatmulDims d = dims(node);
    if (d.m % kMultiple != 0 || d.n % kMultiple != 0 || d.k % kMultiple != 0) return Float8Choice::kSizes;
    if (is_excepted(node)) return Float8Choice::kExcepted;
    if (is_refused(node)) return Float8Choice::kSlowerHere;
    bool may_pay = use == ProductUse::kWeightGradient ? pays_for_weight(d) : pays(d);
    return may_pay ? Float8Choice::kRangeUnknown : Float8Choice::kCastsTakeMore;
  }

  // Products of what norms make, and of the residual stream's gradient.
  void choose_known() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      ProductUse use = product_uses_[n];
      if (!is_product(node) || !takes(node, use)) continue;
      uses_.products[int(n)] = use;
      uses_.sources[origin_of(graph_, node.inputs[0])] = reads_gradient(node, use);
    }
  }

  // The product that a function is applied to, perhaps with a bias; -1: there is none.
  int product_before(ValueId value) const {
    int n = graph_.producer(value);
    bool has_bias = n >= 0 && graph_.nodes()[size_t(n)].op == &op::add;
    return product_alone(has_bias ? graph_.nodes()[size_t(n)].inputs[0] : value);
  }
  // The same without a bias.
  int product_alone(ValueId value) const {
    int n = graph_.producer(value);
    return n >= 0 && graph_.nodes()[size_t(n)].op == &op::matmul ? n : -1;
  }

  // Whether a node is part of what the gradient of an activation function, or of a gate, consists of.
  static bool passes_gradient_on(const Node& node) {
    bool function = node.op == &op::gelu_grad || node.op == &op::silu_grad || node.op == &op::relu2_grad;
    return node.phase == Phase::kBackward && (function || node.op == &op::mul);
  }

  // The chosen product that gives the gradient which such nodes passed on as this value; -1: there is none.
  int gradient_before(ValueId value) const {
    int n = graph_.producer(value);
    if (n < 0) return -1;
    const Node& node = graph_.nodes()[size_t(n)];
    if (!passes_gradient_on(node)) return is_chosen_gradient(n) ? n : -1;
    int before = node.op == &op::mul ? gradient_before(node.inputs[0]) : -1;
    return before >= 0 ? before : gradient_before(node.inputs[1]);
  }

  bool is_chosen_gradient(int n) const {
    auto chosen = uses_.products.find(n);
    return chosen != uses_.products.end() && reads_gradient(graph_.nodes()[size_t(n)], chosen->second);
  }

  // GELU of a chosen product, or what becomes of its gradient: where all products that read it can have eight bits,
  // nothing else is stored of it.
  void choose_hidden(ValueId value, int product) {
    if (product < 0 || !uses_.products.contains(product)) return;
    bool gradient = is_chosen_gradient(product);
    if (!gradient && !norm_behind(graph_, graph_.nodes()[size_t(product)].inputs[0])) return;
    if (take_readers(value, gradient, /*alone=*/true) && !gradient) uses_.hidden[product] = value;
  }

  // What attention gives is a mean of values, each no larger than their product's bound, unless dropout makes some
  // larger; it reads them packed with queries and keys. Its gradient has the range of the stream's. Both are also read
  // as they are, by attention's gradient or by sums, so that eight bits are a copy.
  void choose_of_attention(const Node& node) {
    ValueId value = node.outputs[0];
    if (node.op == &op::attention_grad || node.op == &op::packed_rotary_grad) take_readers(value, true, false);
    int product = node.op == &op::attention ? product_of_packed(node) : -1;
    if (product >= 0 && take_readers(value, false, false)) uses_.hidden[product] = value;
  }

  // Chooses the products that may read `value` in eight bits; `alone`: if nothing else reads it. Whether there are any.
  bool take_readers(ValueId value, bool gradient, bool alone) {
    std::map<int, ProductUse> found;
    bool all = find_readers(value, gradient, found);
    if (found.empty() || (alone && !all)) return false;
    uses_.products.insert(found.begin(), found.end());
    uses_.sources[value] = gradient;
    return true;
  }

  // The chosen product of a norm that attention without dropout reads; -1: there is none.
  int product_of_packed(const Node& attention) const {
    bool packed = graph_.shape(attention.inputs[0]).back() == 3 * graph_.shape(attention.outputs[0]).back();
    if (!packed || attention.attrs.get_double("dropout") > 0) return -1;
    const Node* maker = maker_of(graph_, attention.inputs[0]);
    bool turned = maker && maker->op == &op::packed_rotary;  // which leaves values as they are
    int product = turned ? product_alone(maker->inputs[0]) : product_before(attention.inputs[0]);
    bool bounded = uses_.products.contains(product) && norm_behind(graph_, graph_.nodes()[size_t(product)].inputs[0]);
    return bounded ? product : -1;
  }

  // The products that may read `value`, or a view of it, in eight bits. Whether nothing needs it as it is; sums of a
  // gradient are part of its product.
  bool find_readers(ValueId value, bool gradient, std::map<int, ProductUse>& found) const {
    bool all = !escaping_[size_t(value)];
    for (int n : users_[size_t(value)]) {
      const Node& reader = graph_.nodes()[size_t(n)];
      bool sums = reader.op == &op::cast || reader.op == &op::reduce_sum;
      if (reader.op == &op::reshape) {
        all &= find_readers(reader.outputs[0], gradient, found);
      } else if (gradient && sums) {
        continue;
      } else if (reader.op == &op::matmul && takes_hidden(reader, value, gradient)) {
        found[n] = reader.attrs.get_bool("trans_a") ? ProductUse::kWeightGradient
                   : gradient                       ? ProductUse::kInputGradient
                                                    : ProductUse::kForward;
      } else {
        all = false;
      }
    }
    return all;
  }

  bool takes_hidden(const Node& node, ValueId value, bool gradient) const {
    const ValueType &a = graph_.type(node.inputs[0]), &b = graph_.type(node.inputs[1]);
    if (node.inputs.size() != 2 || a.dtype != DType::kBF16 || b.dtype != DType::kBF16 || b.shape.size() != 2)
      return false;
    if (node.inputs[0] == node.inputs[1] || node.attrs.find("result")) return false;  // whose numbers are said
    if (is_refused(node) || is_excepted(node)) return false;
    MatmulDims d = dims(node);
    if (d.m % kMultiple != 0 || d.n % kMultiple != 0 || d.k % kMultiple != 0) return false;
    if (!node.attrs.get_bool("trans_a")) return node.inputs[0] == value && pays(d);
    if (node.attrs.get_bool("trans_b") || !pays_for_weight(d)) return false;
    // The other operand has eight bits for other products already.
    ValueId other = origin_of(graph_, node.inputs[node.inputs[0] == value ? 1 : 0]);
    auto source = uses_.sources.find(other);
    return source != uses_.sources.end() && source->second == !gradient;
  }

  // Whether a value is the residual stream's gradient as a norm's kernel leaves it: what the norm's branch adds to it;
  // or as the next stage of a pipeline sent it.
  bool is_stream_gradient(ValueId value) const {
    const Node* maker = maker_of(graph_, value);
    if (!maker) return graph_.argument_of(value)->spec.role == Role::kResidual;
    if (is_norm_gradient(*maker)) return true;
    if (maker->op != &op::add) return false;
    return std::ranges::any_of(maker->inputs, [&](ValueId input) {
      const Node* branch = maker_of(graph_, input);
      return branch && is_norm_gradient(*branch);
    });
  }

  // Whether the left operand is one whose range is known.
  bool has_range(const Node& node, ProductUse use) const {
    if (node.op == &op::classifier || use == ProductUse::kForward) return norm_behind(graph_, node.inputs[0]);
    return use == ProductUse::kInputGradient && is_stream_gradient(wide_origin_of(graph_, node.inputs[0]));
  }

  // So far sources are what products' operands begin with.
  void place_gathered() {
    std::map<ValueId, bool> origins = std::move(uses_.sources);
    uses_.sources.clear();
    for (const auto& [n, use] : uses_.products) {
      const ValueIds& operands = graph_.nodes()[size_t(n)].inputs;
      size_t sources = use == ProductUse::kWeightGradient && graph_.nodes()[size_t(n)].op == &op::matmul ? 2 : 1;
      for (size_t i = 0; i < sources; ++i) place(operands[i], origins.at(origin_of(graph_, operands[i])));
    }
  }

  void place(ValueId value, bool gradient) {
    const Node* maker = maker_of(graph_, value);
    bool view = maker && maker->op == &op::reshape, gathered = maker && is_gather(*maker);
    if (gathered && reads_eight_bits(value)) uses_.narrow.insert(value);
    if (view || uses_.narrow.contains(value)) {
      place(maker->inputs[0], gradient);
      if (view && uses_.narrow.contains(maker->inputs[0])) uses_.narrow.insert(value);
    } else {
      uses_.sources[value] = gradient;
    }
  }

  // Whether all readers of a value and its views do. A classifier also reads it as it is.
  bool reads_eight_bits(ValueId value) const {
    return !escaping_[size_t(value)] && std::ranges::all_of(users_[size_t(value)], [&](int n) {
      const Node& reader = graph_.nodes()[size_t(n)];
      if (reader.op == &op::reshape) return reads_eight_bits(reader.outputs[0]);
      return reader.op == &op::matmul && uses_.products.contains(n);
    });
  }

  MatmulDims dims(const Node& node) const { return product_dims(graph_, node); }

  bool takes(const Node& node, ProductUse use) const {
    if (node.inputs.size() > (node.op == &op::matmul ? 2 : 4) || !has_range(node, use)) return false;
    if (graph_.dtype(node.inputs[0]) != DType::kBF16 || graph_.dtype(node.inputs[1]) != DType::kBF16) return false;
    if (graph_.shape(node.inputs[1]).size() != 2) return false;
    if ((node.op == &op::matmul && node.attrs.get_bool("trans_a")) || is_refused(node) || is_excepted(node))
      return false;
    MatmulDims d = dims(node);
    return d.m % kMultiple == 0 && d.n % kMultiple == 0 && d.k % kMultiple == 0 && pays(d, is_gathered(node.inputs[0]));
  }

  bool is_refused(const Node& node) const {
    return !refused_.empty() && refused_.contains(float8_key(graph_, node).value_or(""));
  }

  // All products of weights of such a kind; those of their gradients are found by what the forward products read.
  void find_excepted() {
    std::set<ValueId> read;
    for (ProductUse use : {ProductUse::kForward, ProductUse::kInputGradient, ProductUse::kWeightGradient})
      for (size_t n = 0; n < graph_.nodes().size(); ++n) {
        const Node& node = graph_.nodes()[n];
        if (!is_product(node) || product_uses_[n] != use) continue;
        auto is_read = [&](ValueId input) { return read.contains(wide_origin_of(graph_, input)); };
        bool of_weight = use != ProductUse::kWeightGradient || node.op == &op::classifier;
        if (of_weight ? !has_excepted_weight(node) : std::ranges::none_of(node.inputs, is_read)) continue;
        left_.insert(node.outputs[0]);
        if (use == ProductUse::kForward) read.insert(wide_origin_of(graph_, node.inputs[0]));
      }
  }

  bool has_excepted_weight(const Node& product) const {
    std::set<std::string> kinds = kinds_behind(graph_, product.inputs[1]);
    return std::ranges::any_of(kinds, [&](const std::string& kind) { return excepted_.contains(kind); });
  }

  bool is_excepted(const Node& node) const { return left_.contains(node.outputs[0]); }

  // What else reads it may want the gathered values as they are: then the cast is a pass of its own.
  bool is_gathered(ValueId value) const {
    const Node* maker = maker_of(graph_, value);
    return maker && (is_gather(*maker) || (maker->op == &op::reshape && is_gathered(maker->inputs[0])));
  }

  bool pays(const MatmulDims& d, bool reads = false) const {
    return saves_more(d, (reads ? 3 : 1) * double(d.m) * double(d.k) + kWeightBytes * double(d.n) * double(d.k));
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

  const Graph& graph_;
  const Target& target_;
  const std::set<std::string>& refused_;
  std::set<std::string> excepted_;  // kinds of weights
  std::set<ValueId> left_;          // results of their products
  Users users_;
  std::vector<bool> escaping_;
  std::vector<ProductUse> product_uses_;
  Float8Uses uses_;
};

}  // namespace

const Node* maker_of(const Graph& graph, ValueId value) {
  int maker = graph.producer(value);
  return maker < 0 ? nullptr : &graph.nodes()[size_t(maker)];
}

ValueId origin_of(const Graph& graph, ValueId value) {
  const Node* maker = maker_of(graph, value);
  return maker && (is_gather(*maker) || maker->op == &op::reshape) ? origin_of(graph, maker->inputs[0]) : value;
}

const Node* norm_behind(const Graph& graph, ValueId value) {
  ValueId made = wide_origin_of(graph, value);
  const Node* maker = maker_of(graph, made);
  return maker && is_norm(*maker) && maker->outputs[0] == made ? maker : nullptr;
}

bool reads_gradient(const Node& node, ProductUse use) {
  return node.op == &op::matmul && use == ProductUse::kInputGradient;
}

std::optional<std::string> float8_key(const Graph& graph, const Node& node) {
  if (!is_product(node) && node.op != &op::fused_matmul) return std::nullopt;
  MatmulDims d;
  if (node.op == &op::fused_matmul) {
    MatmulForm form = read_matmul(graph, node);
    d = {form.batch, form.m, form.n, form.k, {}};
  } else {
    d = product_dims(graph, node);
  }
  // The pass may compute a gradient the other way round.
  auto [less, more] = std::minmax({d.batch * d.m, d.n});
  return fmt::format("eight bits {} x {} over {}{}", more, less, d.k, node.phase == Phase::kForward ? "" : " backward");
}

bool has_float8_operand(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.inputs, [&](ValueId input) { return is_float8(graph.dtype(input)); });
}

Float8Uses choose_float8(const Graph& graph, const PassContext& context) {
  return Float8Chooser(graph, context).take();
}

std::vector<std::optional<Float8Choice>> float8_choices(const Graph& graph, const PassContext& context) {
  return Float8Chooser(graph, context).choices();
}

}  // namespace tokamak
