// attention: softmax(scale q k^T + causal mask) v per head, from the packed projection as it lies; and its gradient.
// Kept whole it gets a kernel that never stores T x T (Dao et al., "FlashAttention", 2022); decompose() is the naive
// form. With documents, i32 (B, T) that gives the first position of each one's document, a position attends to its own
// document alone. Legend: B batch, T time, C width, H heads, D = C / H.

#include "ops/attention.h"

#include "base/dropout_random.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/attention_operands.h"
#include "ops/context_attention.h"
#include "ops/dropout.h"
#include "ops/element_place.h"
#include "ops/generate.h"
#include "ops/interpret.h"  // round_to
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/sharding_rules.h"

#include <cmath>
#include <limits>

namespace tokamak {
namespace {

using Dims = AttentionDims;
using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kAttrs[] = {{"causal"}, {"dropout"},     {"float8", false}, {"heads"},        {"place", false},
                              {"scale"},  {kRandomStream}, {"tf32", false},   {"window", false}};
constexpr AttrDef kGradAttrs[] = {{"any_order", false}, {"causal"}, {"dropout"},     {"float8", false}, {"heads"},
                                  {"place", false},     {"scale"},  {kRandomStream}, {"sums", false},   {"tf32", false},
                                  {"window", false}};

// Reference view of one tensor of the packed projection.
struct Packed {
  const HostTensor& qkv;  // (B, T, 3C)
  Dims d;
  int64_t at(int64_t which, int64_t b, int64_t t, int64_t h, int64_t i) const {
    return (b * d.T + t) * 3 * d.C + which * d.C + h * d.D + i;
  }
  double q(int64_t b, int64_t t, int64_t h, int64_t i) const { return qkv[at(0, b, t, h, i)]; }
  double k(int64_t b, int64_t t, int64_t h, int64_t i) const { return qkv[at(1, b, t, h, i)]; }
  double v(int64_t b, int64_t t, int64_t h, int64_t i) const { return qkv[at(2, b, t, h, i)]; }
};

// Dropout of the probabilities of a node.
class Dropout {
 public:
  Dropout(const Node& node, const HostTensor* rng, const Dims& d)
      : p_(node.attrs.get_double("dropout")), heads_(d.H),
        place_(rng ? ElementPlace(node.attrs, *rng) : ElementPlace()),
        random_(rng ? step_key(int32_t((*rng)[0]), int32_t((*rng)[1])) : 0, uint64_t(node.attrs.get_int(kRandomStream)),
                d.T) {}

  // 0 where probability (b, h, i, j) is dropped, else what it is multiplied by.
  double factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (p_ == 0) return 1;
    return random_(place_(b * heads_ + h), i, j) < dropout_threshold(p_) ? 0 : dropout_factor(p_);
  }

 private:
  double p_;
  int64_t heads_;
  ElementPlace place_;  // of a matrix
  MatrixRandom random_;
};

// What one query may see: the keys [begin, end) of its own document, up to itself when causal.
struct Keys {
  int64_t begin, end;
};
Keys visible_keys(const Node& node, const HostTensor* documents, const Dims& d, int64_t b, int64_t i) {
  bool causal = node.attrs.get_bool("causal");
  if (!documents) return {0, causal ? i + 1 : d.T};
  const double* first = &documents->data[size_t(b * d.T)];
  Keys keys{int64_t(first[i]), i + 1};
  while (!causal && keys.end < d.T && first[keys.end] <= double(i)) ++keys.end;
  return keys;
}

double score(const Packed& x, double scale, int64_t b, int64_t h, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t c = 0; c < x.d.D; ++c) sum += x.q(b, i, h, c) * x.k(b, j, h, c);
  return sum * scale;
}

bool gives_sums(const Attrs& attrs) { return attrs.get_bool("sums", false); }
bool gives_float8(const Attrs& attrs) { return attrs.get_bool("float8", false); }

// As a cast behind it: rounded to the type of qkv, times the factor, rounded to eight bits.
double to_float8(DType type, double value, DType stored, const HostTensor& factor) {
  return round_to(type, round_to(DType::kF32, round_to(stored, value) * factor[0]));
}

// attention(qkv[, rng][, documents][, factor]) -> out, lse[, with float8=true out in e4m3]
ValueTypes infer(const NodeSpec& spec) {
  Dims d = attention_dims(spec);
  check_optional_operands(spec, d);
  ValueTypes outputs{{spec.inputs[0].dtype, {d.B, d.T, d.C}}, {DType::kF32, {d.B, d.H, d.T}}};
  if (gives_float8(spec.attrs)) outputs.push_back({DType::kF8E4M3, outputs[0].shape});
  return outputs;
}

void reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  Dims d = attention_dims({*node.op, {in[0]->type}, node.attrs});
  Packed x{*in[0], d};
  AttentionOperands at = attention_operands(*node.op, node.attrs, in.size());
  const HostTensor* documents = operand(in, at.documents);
  Dropout dropout(node, operand(in, at.rng), d);
  double scale = node.attrs.get_double("scale");
  std::vector<double> s(static_cast<size_t>(d.T));
  for (int64_t b = 0; b < d.B; ++b)
    for (int64_t h = 0; h < d.H; ++h)
      for (int64_t i = 0; i < d.T; ++i) {
        auto [begin, end] = visible_keys(node, documents, d, b, i);
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = begin; j < end; ++j) top = std::max(top, s[size_t(j)] = score(x, scale, b, h, i, j));
        for (int64_t j = begin; j < end; ++j) sum += std::exp(s[size_t(j)] - top);
        double lse = top + std::log(sum);
        out[1][(b * d.H + h) * d.T + i] = lse;
        for (int64_t c = 0; c < d.D; ++c) out[0][(b * d.T + i) * d.C + h * d.D + c] = 0;
        for (int64_t j = begin; j < end; ++j) {
          double p = std::exp(s[size_t(j)] - lse) * dropout.factor(b, h, i, j);
          for (int64_t c = 0; c < d.D; ++c) out[0][(b * d.T + i) * d.C + h * d.D + c] += p * x.v(b, j, h, c);
        }
      }
  if (const HostTensor* factor = operand(in, at.factor))
    for (int64_t i = 0; i < out[0].size(); ++i)
      out[2][i] = to_float8(DType::kF8E4M3, out[0][i], x.qkv.type.dtype, *factor);
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  TOKAMAK_CHECK(dy[1] == kNoValue, "attention has no gradient for its second output");
  TOKAMAK_CHECK(!gives_float8(node.attrs), "attention in eight bits has no gradient");
  ValueIds inputs{node.inputs[0], node.outputs[0], node.outputs[1], dy[0]};
  inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());  // rng, documents
  ValueIds grads{g.add1(op::attention_grad, std::move(inputs), node.attrs)};
  grads.resize(node.inputs.size(), kNoValue);
  return grads;
}

// q, k and v as (B, H, T, D).
ValueIds split_heads(GraphBuilder& g, ValueId qkv, const Dims& d) {
  ValueIds parts;
  for (int64_t i = 0; i < 3; ++i) {
    ValueId part = slice(g, qkv, 2, i * d.C, d.C);
    parts.push_back(transpose(g, reshape(g, part, {d.B, d.T, d.H, d.D}), {0, 2, 1, 3}));
  }
  return parts;
}

// Scores (B, H, T, T) of pairs in two documents become minus infinity: of keys before the query's document and, unless
// the causal mask has those, the other way round. Every head has the starts, so that the mask is made inside softmax.
ValueId hide_other_documents(GraphBuilder& g, ValueId scores, ValueId documents, const Dims& d, bool causal) {
  ValueIds heads(size_t(d.H), reshape(g, documents, {d.B, 1, d.T, 1}));
  ValueId starts = d.H == 1 ? heads[0] : concat(g, heads, 1);    // (B, H, T, 1)
  ValueId before = less(g, iota(g, {1, 1, 1, d.T}, 3), starts);  // (B, H, T, T)
  ValueId hidden = constant(g, -std::numeric_limits<double>::infinity());
  scores = select(g, before, hidden, scores);
  return causal ? scores : select(g, transpose(g, before, {0, 1, 3, 2}), hidden, scores);
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  Dims d = attention_dims({*node.op, {g.type(in[0])}, node.attrs});
  auto qkv = split_heads(g, in[0], d);
  ValueId s = mul(g, matmul(g, qkv[0], qkv[1], false, true), constant(g, node.attrs.get_double("scale")));
  if (node.attrs.get_bool("causal")) {
    ValueId hidden = less(g, iota(g, {d.T, 1}, 0), iota(g, {1, d.T}, 1));
    s = select(g, hidden, constant(g, -std::numeric_limits<double>::infinity()), s);
  }
  AttentionOperands at = attention_operands(*node.op, node.attrs, in.size());
  if (at.documents >= 0) s = hide_other_documents(g, s, in[size_t(at.documents)], d, node.attrs.get_bool("causal"));
  ValueId p = softmax(g, s);
  if (at.rng >= 0)
    p = dropout_of_matrices(g, p, in[size_t(at.rng)], node.attrs.get_double("dropout"),
                            node.attrs.get_int(kRandomStream), place_attr(node.attrs));
  ValueId out = transpose(g, matmul(g, cast(g, p, g.type(in[0]).dtype), qkv[2]), {0, 2, 1, 3});
  ValueId top = reduce_max(g, s, {3}, true);
  ValueId lse = add(g, log(g, reduce_sum(g, exp(g, sub(g, s, top)), {3}, true)), top);
  ValueIds outputs{reshape(g, out, {d.B, d.T, d.C}), reshape(g, lse, {d.B, d.H, d.T})};
  if (at.factor >= 0)
    outputs.push_back(cast(g, mul(g, cast(g, outputs[0], DType::kF32), in[size_t(at.factor)]), DType::kF8E4M3));
  return outputs;
}

// Samples and heads apart, by which dropout's numbers go; time as in ops/context_attention.h. qkv is (B, T, [3 H D]),
// out and dout are (B, T, [H D]), lse (B, H, T), documents (B, T), sums ([3 H D]).
constexpr int kSamples = 0, kHeads = 1;  // factors
struct Operands {
  ShardingRule rule;
  OperandFactors qkv, out, lse, sums, documents;
};
Operands operand_factors(const NodeSpec& spec) {
  Dims d = attention_dims(spec);
  Operands o;
  bool numbered = spec.attrs.get_double("dropout") > 0, is_part = spec.attrs.find("place") != nullptr;
  int B = o.rule.add({.size = d.B, .rest = Factor::Rest::kSum, .whole = is_part, .numbered = numbered});
  int H = o.rule.add({.size = d.H, .whole = is_part, .numbered = numbered});
  TOKAMAK_CHECK(B == kSamples && H == kHeads, "attention's factors");
  bool cuts_time = can_cut_time(spec);
  int T = o.rule.add({.size = d.T, .whole = !cuts_time, .placed = cuts_time, .mirrored = cuts_time}),
      three = o.rule.whole(3), D = o.rule.whole(d.D);
  o.qkv = {{B}, {T}, {three, H, D}};
  o.out = {{B}, {T}, {H, D}};
  o.lse = {{B}, {H}, {T}};
  o.sums = {{three, H, D}};
  o.documents = {{B}, {T}};
  return o;
}
void add_operands(Operands& o, const NodeSpec& spec) {
  AttentionOperands at = attention_operands(spec.op, spec.attrs, spec.inputs.size());
  if (at.rng >= 0) o.rule.inputs.push_back(whole_factors(o.rule, spec.inputs[size_t(at.rng)].shape));
  if (at.documents >= 0) o.rule.inputs.push_back(o.documents);
  if (at.factor >= 0) o.rule.inputs.push_back({});
}
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Operands o = operand_factors(spec);
  o.rule.inputs = {o.qkv};
  add_operands(o, spec);
  o.rule.outputs = {o.out, o.lse, o.out};
  o.rule.outputs.resize(outputs.size());
  return o.rule;
}
ValueIds number(GraphBuilder& g, const Node& part, std::span<const ValueId> in, std::span<const PlacedCut> cuts) {
  auto rng = size_t(attention_operands(*part.op, part.attrs, in.size()).rng);
  ValueIds inputs(in.begin(), in.end());
  Attrs attrs = part.attrs;
  inputs[rng] = place_share(g, attrs, in[rng], {g.shape(in[0])[0], attrs.get_int("heads")}, cuts);
  return g.add(*part.op, std::move(inputs), std::move(attrs));
}
void heads_of_lse(Attrs& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  attrs.set("heads", outputs[1][1]);
}
ShardingRule grad_sharding(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Operands o = operand_factors(spec);
  o.rule.inputs = {o.qkv, o.out, o.lse, o.out};
  add_operands(o, spec);
  o.rule.outputs = {o.qkv, o.sums};
  o.rule.outputs.resize(outputs.size());
  return o.rule;
}
void heads_of_input_lse(Attrs& attrs, std::span<const Shape> inputs, std::span<const Shape>) {
  attrs.set("heads", inputs[2][1]);
}

// 2 matmuls of 2 T T D FLOPs a head forward, 5 backward; half of that when causal. With documents that is the most:
// their lengths are data.
Cost attention_cost(const NodeSpec& spec, std::span<const ValueType> outputs, double matmuls) {
  const Shape& qkv = spec.inputs[0].shape;
  Cost cost = default_cost(spec, outputs);
  double seen = double(qkv[1]);  // keys, by a query on average
  if (spec.attrs.get_bool("causal", true)) seen = causal_keys(seen, attention_window(spec.attrs));
  double pairs = double(qkv[0]) * double(qkv[1]) * seen;  // of queries and keys, of a head
  cost.flops = matmuls * 2.0 * pairs * double(qkv[2] / 3);
  if (spec.attrs.get_double("dropout") > 0) cost.draws = pairs * double(spec.attrs.get_int("heads"));
  return cost;
}
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = attention_cost(spec, outputs, 2);
  if (gives_float8(spec.attrs)) cost.flops += double(num_elements(outputs[0].shape));
  return cost;
}

Cost grad_cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = attention_cost(spec, outputs, 5);
  cost.flops += double(gives_sums(spec.attrs) + gives_float8(spec.attrs)) * double(num_elements(outputs[0].shape));
  return cost;
}

// attention_grad(qkv, out, lse, dout[, rng][, documents][, factor]) -> dqkv[, its sums over B and T: f32 (3C)]
// With float8=true dqkv, rounded to the type of qkv and multiplied by the factor, is f8e5m2; the sums are those before.
// The sums are the gradient of a bias on qkv. Where out and lse are attention's, those of dk are zero but for rounding,
// as a bias on k adds the same to all scores of a query; and those of dv are dout's, without dropout. A kernel may make
// use of that.
ValueTypes infer_grad(const NodeSpec& spec) {
  Dims d = attention_dims(spec);
  if (spec.inputs[1].shape != Shape{d.B, d.T, d.C} || spec.inputs[3].shape != spec.inputs[1].shape)
    user_error("[attention_grad] expected out and dout (B, T, C), got {} and {}", to_string(spec.inputs[1]),
               to_string(spec.inputs[3]));
  if (ValueType lse{DType::kF32, {d.B, d.H, d.T}}; spec.inputs[2] != lse)
    user_error("[attention_grad] expected lse to be {}, got {}", to_string(lse), to_string(spec.inputs[2]));
  check_optional_operands(spec, d);
  ValueTypes outputs{spec.inputs[0]};
  if (gives_float8(spec.attrs)) outputs[0].dtype = DType::kF8E5M2;
  if (gives_sums(spec.attrs)) outputs.push_back({DType::kF32, {3 * d.C}});
  return outputs;
}

// Of the values as they are stored.
void sum_columns(const HostTensor& x, DType stored, HostTensor& sums) {
  for (int64_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += round_to(stored, x[i]);
}

void grad_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  Dims d = attention_dims({*node.op, {in[0]->type}, node.attrs});
  Packed x{*in[0], d};
  const HostTensor &y = *in[1], &lse = *in[2], &dy = *in[3];
  AttentionOperands at = attention_operands(*node.op, node.attrs, in.size());
  const HostTensor* documents = operand(in, at.documents);
  Dropout dropout(node, operand(in, at.rng), d);
  double scale = node.attrs.get_double("scale");
  for (int64_t b = 0; b < d.B; ++b)
    for (int64_t h = 0; h < d.H; ++h)
      for (int64_t i = 0; i < d.T; ++i) {
        auto row = [&](int64_t c) { return (b * d.T + i) * d.C + h * d.D + c; };
        double delta = 0;
        for (int64_t c = 0; c < d.D; ++c) delta += y[row(c)] * dy[row(c)];
        auto [begin, end] = visible_keys(node, documents, d, b, i);
        for (int64_t j = begin; j < end; ++j) {
          double p = std::exp(score(x, scale, b, h, i, j) - lse[(b * d.H + h) * d.T + i]);
          double keep = dropout.factor(b, h, i, j), dp = 0;
          for (int64_t c = 0; c < d.D; ++c) dp += dy[row(c)] * x.v(b, j, h, c);
          double ds = p * (dp * keep - delta) * scale;
          for (int64_t c = 0; c < d.D; ++c) {
            out[0][x.at(0, b, i, h, c)] += ds * x.k(b, j, h, c);
            out[0][x.at(1, b, j, h, c)] += ds * x.q(b, i, h, c);
            out[0][x.at(2, b, j, h, c)] += p * keep * dy[row(c)];
          }
        }
      }
  DType dtype = x.qkv.type.dtype;
  if (gives_sums(node.attrs)) sum_columns(out[0], dtype, out[1]);
  if (const HostTensor* factor = operand(in, at.factor))
    for (double& dqkv : out[0].data) dqkv = to_float8(DType::kF8E5M2, dqkv, dtype, *factor);
}

}  // namespace

namespace op {
constinit const OpDef attention = {
    .name = "attention",
    .min_inputs = 1,
    .max_inputs = 4,
    .attrs = kAttrs,
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .decompose = decompose,
    .cost = cost,
    .autocast = Autocast::kLow,
    .sharding = {.rule = sharding, .of_part = heads_of_lse, .place = place_attention, .number = number}};
constinit const OpDef attention_grad = {
    .name = "attention_grad",
    .min_inputs = 4,
    .max_inputs = 7,
    .attrs = kGradAttrs,
    .infer = infer_grad,
    .no_gradient = "second derivatives are not needed",
    .reference = grad_reference,
    .cost = grad_cost,
    .autocast = Autocast::kLow,
    .low_inputs = 0b1011,  // not lse
    .sharding = {
        .rule = grad_sharding, .of_part = heads_of_input_lse, .place = place_attention_grad, .number = number}};
}  // namespace op

AttentionDims attention_dims(const NodeSpec& spec) {
  const ValueType& qkv = spec.inputs[0];
  int64_t H = spec.attrs.get_int("heads");
  if (qkv.shape.size() != 3 || qkv.shape[2] % 3 != 0)
    user_error("[{}] expected a packed projection (B, T, 3C), got {}", spec.op.name, to_string(qkv));
  int64_t C = qkv.shape[2] / 3;
  if (H < 1 || C % H != 0) user_error("[{}] expected heads that divide the width {}, got {}", spec.op.name, C, H);
  return {qkv.shape[0], qkv.shape[1], C, H, C / H};
}

void check_optional_operands(const NodeSpec& spec, const AttentionDims& d) {
  size_t least =
      size_t(spec.op.min_inputs) + (spec.attrs.get_double("dropout") > 0) + spec.attrs.get_bool("float8", false);
  if (spec.inputs.size() < least || spec.inputs.size() > least + 1)
    user_error("[{}] expected {} inputs with dropout {}, got {}; documents would be one more", spec.op.name, least,
               spec.attrs.get_double("dropout"), spec.inputs.size());
  AttentionOperands at = attention_operands(spec.op, spec.attrs, spec.inputs.size());
  auto require = [&](int place, const char* name, const ValueType& expected) {
    if (place >= 0 && spec.inputs[size_t(place)] != expected)
      user_error("[{}] expected {} to be {}, got {}", spec.op.name, name, to_string(expected),
                 to_string(spec.inputs[size_t(place)]));
  };
  require(at.rng, "rng", rng_type(spec.attrs));
  require(at.documents, "documents", {DType::kI32, {d.B, d.T}});
  require(at.factor, "factor", {DType::kF32, {}});
}

AttentionOperands attention_operands(const OpDef& op, const Attrs& attrs, size_t inputs) {
  int next = op.min_inputs;
  AttentionOperands at;
  if (attrs.get_bool("float8", false)) at.factor = int(--inputs);
  if (attrs.get_double("dropout") > 0) at.rng = next++;
  if (size_t(next) < inputs) at.documents = next;
  return at;
}

ValueId attention(GraphBuilder& g, ValueId qkv, const AttentionOptions& o, ValueId rng, ValueId documents) {
  ValueIds inputs{qkv};
  if (o.dropout > 0) inputs.push_back(rng);
  if (documents != kNoValue) inputs.push_back(documents);
  Attrs attrs{{"causal", o.causal},
              {"dropout", o.dropout},
              {"heads", o.heads},
              {"scale", o.scale},
              {kRandomStream, o.random_stream}};
  if (o.window > 0) attrs.set("window", o.window);
  return g.add(op::attention, std::move(inputs), std::move(attrs))[0];
}

int64_t attention_window(const Attrs& attrs) { return attrs.get_int("window", 0); }

}  // namespace tokamak
