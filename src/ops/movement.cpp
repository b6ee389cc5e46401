// Ops that move elements and compute nothing: reshape (a view), transpose, slice, pad, concat.

#include "ops/movement.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/sharding_rules.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace tokamak {
namespace {

constexpr AttrDef kReshapeAttrs[] = {{"shape"}};
constexpr AttrDef kTransposeAttrs[] = {{"perm"}};
constexpr AttrDef kSliceAttrs[] = {{"begin"}, {"dim"}, {"size"}};
constexpr AttrDef kPadAttrs[] = {{"after"}, {"before"}, {"dim"}, {"parts", false}};
constexpr AttrDef kConcatAttrs[] = {{"dim"}};

// No FLOPs; what is written was read once.
Cost move_cost(const NodeSpec&, std::span<const ValueType> outputs) { return {0, 2 * double(num_bytes(outputs[0]))}; }
Cost view_cost(const NodeSpec&, std::span<const ValueType>) { return {}; }

size_t checked_dim(const NodeSpec& spec) {
  int64_t dim = spec.attrs.get_int("dim"), rank = int64_t(spec.inputs[0].shape.size());
  if (dim < 0 || dim >= rank) user_error("[{}] expected a dim below {}, got {}", spec.op.name, rank, dim);
  return size_t(dim);
}

// Sizes around dim: (outer, dim, inner).
struct Around {
  int64_t outer = 1, size, inner = 1;
};
Around around(const Shape& shape, size_t dim) {
  Around a{1, shape[dim], 1};
  for (size_t i = 0; i < dim; ++i) a.outer *= shape[i];
  for (size_t i = dim + 1; i < shape.size(); ++i) a.inner *= shape[i];
  return a;
}

ValueTypes infer_reshape(const NodeSpec& spec) {
  const Shape& shape = spec.attrs.get_ints("shape");
  if (num_elements(shape) != num_elements(spec.inputs[0].shape))
    user_error("[reshape] expected as many elements as {}, got {}", to_string(spec.inputs[0].shape), to_string(shape));
  return {{spec.inputs[0].dtype, shape}};
}
void reshape_reference(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  out[0].data = in[0]->data;
}
ValueIds reshape_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  return {reshape(g, dy[0], g.shape(node.inputs[0]))};
}

// Dims [i, ...) and [j, ...) of two shapes of as many elements, up to where both have the same number.
struct SameElements {
  size_t from_begin, from_end, to_begin, to_end;
};
std::vector<SameElements> match_dims(const Shape& from, const Shape& to) {
  std::vector<SameElements> matches;
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    SameElements match{i, i + 1, j, j + 1};
    int64_t a = from[i++], b = to[j++];
    while (a != b) a < b ? a *= from[i++] : b *= to[j++];
    match.from_end = i, match.to_end = j;
    matches.push_back(match);
  }
  return matches;
}

// Gives dims [begin, end) of the operand those of the factors, which are of consecutive sizes, that each is made of.
void take_factors(const ShardingRule& rule, const Shape& shape, size_t begin, size_t end, int first,
                  OperandFactors& operand) {
  for (size_t d = begin; d < end; ++d)
    for (int64_t size = 1; size != shape[d]; size *= rule.factors[size_t(first++)].size) operand[d].push_back(first);
}

// The ends of dims of both shapes, as numbers of parts of the elements that they share, cut these into factors: (6, 4)
// and (2, 12) into 2 x 3 x 4. Where one of them does not divide the next, the dims have none in common.
void add_factors(ShardingRule& rule, const Shape& from, const Shape& to, const SameElements& match) {
  std::set<int64_t> ends{1};
  int64_t parts = 1;
  for (size_t i = match.from_begin; i < match.from_end; ++i) ends.insert(parts *= from[i]);
  parts = 1;
  for (size_t j = match.to_begin; j < match.to_end; ++j) ends.insert(parts *= to[j]);
  for (auto at = ends.begin(); std::next(at) != ends.end(); ++at)
    if (*std::next(at) % *at != 0) {
      for (size_t i = match.from_begin; i < match.from_end; ++i) rule.inputs[0][i] = {rule.whole(from[i])};
      for (size_t j = match.to_begin; j < match.to_end; ++j) rule.outputs[0][j] = {rule.whole(to[j])};
      return;
    }
  auto first = int(rule.factors.size());
  for (auto at = ends.begin(); std::next(at) != ends.end(); ++at) rule.apart(*std::next(at) / *at);
  take_factors(rule, from, match.from_begin, match.from_end, first, rule.inputs[0]);
  take_factors(rule, to, match.to_begin, match.to_end, first, rule.outputs[0]);
}

ShardingRule reshape_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  const Shape &from = spec.inputs[0].shape, &to = outputs[0].shape;
  ShardingRule rule;
  rule.inputs = {OperandFactors(from.size())};
  rule.outputs = {OperandFactors(to.size())};
  for (const SameElements& match : match_dims(from, to)) add_factors(rule, from, to, match);
  rule.linear = {{0}};
  return rule;
}

ValueTypes infer_transpose(const NodeSpec& spec) {
  const auto& perm = spec.attrs.get_ints("perm");
  const Shape& from = spec.inputs[0].shape;
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool valid = perm.size() == from.size();
  for (size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == int64_t(i);
  if (!valid)
    user_error("[transpose] expected a permutation of the dims of {}, got {}", to_string(from), to_string(Attr(perm)));
  Shape shape;
  for (int64_t p : perm) shape.push_back(from[size_t(p)]);
  return {{spec.inputs[0].dtype, shape}};
}
void transpose_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const auto& perm = node.attrs.get_ints("perm");
  std::vector<int64_t> strides = broadcast_strides(in[0]->shape(), in[0]->shape());
  for (int64_t i = 0; i < out[0].size(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = perm.size(); d-- > 0;) {
      from += rest % out[0].shape()[d] * strides[size_t(perm[d])];
      rest /= out[0].shape()[d];
    }
    out[0][i] = (*in[0])[from];
  }
}
ValueIds transpose_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  const auto& perm = node.attrs.get_ints("perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[size_t(perm[i])] = int64_t(i);
  return {transpose(g, dy[0], inverse)};
}

ShardingRule transpose_rule(const NodeSpec& spec, std::span<const ValueType>) {
  ShardingRule rule;
  rule.inputs = {factors_of(rule, spec.inputs[0].shape)};
  rule.outputs.emplace_back();
  for (int64_t p : spec.attrs.get_ints("perm")) rule.outputs[0].push_back(rule.inputs[0][size_t(p)]);
  rule.linear = {{0}};
  return rule;
}

// Of an op with `count` inputs of shape `block`, which may be one of the equal blocks that dim of its output `all`
// consists of: within the block that dim may then be cut.
ShardingRule block_rule(const Shape& block, const Shape& all, size_t dim, bool is_block, size_t count) {
  ShardingRule rule;
  OperandFactors one = factors_of(rule, block), many = one;
  many[dim] = {rule.whole(is_block ? all[dim] / block[dim] : all[dim])};
  is_block ? many[dim].push_back(one[dim][0]) : void(rule.factors[size_t(one[dim][0])].whole = true);
  rule.inputs.assign(count, one);
  rule.outputs = {many};
  rule.linear.emplace_back();
  for (size_t i = 0; i < count; ++i) rule.linear[0].push_back(int(i));
  return rule;
}

ValueTypes infer_slice(const NodeSpec& spec) {
  size_t dim = checked_dim(spec);
  Shape shape = spec.inputs[0].shape;
  int64_t begin = spec.attrs.get_int("begin"), size = spec.attrs.get_int("size");
  if (begin < 0 || size < 1 || begin + size > shape[dim])
    user_error("[slice] expected a range within [0, {}), got [{}, {})", shape[dim], begin, begin + size);
  shape[dim] = size;
  return {{spec.inputs[0].dtype, shape}};
}

ValueTypes infer_slice_view(const NodeSpec& spec) {
  if (!may_view_slice(spec))
    user_error("[slice_view] expected rows that lie one behind the other, from a multiple of {} bytes on, got {} of {}",
               kViewAlignment, spec.attrs.get_int("begin"), to_string(spec.inputs[0]));
  return infer_slice(spec);
}

// Copies `count` whole indices of dim, from index `from_at` of x to `to_at` of y.
void copy_range(const HostTensor& x, int64_t from_at, HostTensor& y, int64_t to_at, size_t dim, int64_t count) {
  Around from = around(x.shape(), dim), to = around(y.shape(), dim);
  for (int64_t o = 0; o < from.outer; ++o)
    for (int64_t i = 0; i < count * from.inner; ++i)
      y[(o * to.size + to_at) * to.inner + i] = x[(o * from.size + from_at) * from.inner + i];
}

void slice_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  copy_range(*in[0], node.attrs.get_int("begin"), out[0], 0, size_t(node.attrs.get_int("dim")),
             node.attrs.get_int("size"));
}
ValueIds slice_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  int64_t dim = node.attrs.get_int("dim"), begin = node.attrs.get_int("begin");
  int64_t after = g.shape(node.inputs[0])[size_t(dim)] - begin - node.attrs.get_int("size");
  return {pad(g, dy[0], dim, begin, after)};
}

ShardingRule slice_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  auto dim = size_t(spec.attrs.get_int("dim"));
  int64_t begin = spec.attrs.get_int("begin"), size = spec.attrs.get_int("size");
  const Shape& from = spec.inputs[0].shape;
  ShardingRule rule = block_rule(outputs[0].shape, from, dim, from[dim] % size == 0 && begin % size == 0, 1);
  std::swap(rule.inputs, rule.outputs);
  return rule;
}
void slice_of_part(Attrs& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  int64_t size = attrs.get_int("size"), part = outputs[0][size_t(attrs.get_int("dim"))];
  if (part == size) return;
  attrs.set("begin", attrs.get_int("begin") / size * part);
  attrs.set("size", part);
}

int64_t parts_of(const Attrs& attrs) { return attrs.get_int("parts", 1); }

ValueTypes infer_pad(const NodeSpec& spec) {
  size_t dim = checked_dim(spec);
  Shape shape = spec.inputs[0].shape;
  int64_t before = spec.attrs.get_int("before"), after = spec.attrs.get_int("after"), parts = parts_of(spec.attrs);
  if (before < 0 || after < 0) user_error("[pad] expected amounts of 0 or more, got {} and {}", before, after);
  if (parts != 1 && (parts < 1 || dim != 0 || before != 0 || after == 0 || shape[0] % parts != 0))
    user_error("[pad] expected parts that divide the {} rows, behind which they are padded, got {}", shape[0], parts);
  shape[dim] += before + parts * after;
  return {{spec.inputs[0].dtype, shape}};
}
void pad_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  auto dim = size_t(node.attrs.get_int("dim"));
  std::fill(out[0].data.begin(), out[0].data.end(), 0.0);
  int64_t parts = parts_of(node.attrs);
  if (parts == 1) return copy_range(*in[0], 0, out[0], node.attrs.get_int("before"), dim, in[0]->shape()[dim]);
  int64_t from = int64_t(in[0]->data.size()) / parts, to = int64_t(out[0].data.size()) / parts;
  for (int64_t part = 0; part < parts; ++part)
    std::copy_n(in[0]->data.begin() + part * from, from, out[0].data.begin() + part * to);
}
ValueIds pad_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  int64_t dim = node.attrs.get_int("dim"), parts = parts_of(node.attrs);
  const Shape shape = g.shape(node.inputs[0]);
  if (parts == 1) return {slice(g, dy[0], dim, node.attrs.get_int("before"), shape[size_t(dim)])};
  Shape apart = g.shape(dy[0]);
  apart[0] /= parts;
  apart.insert(apart.begin(), parts);
  return {reshape(g, slice(g, reshape(g, dy[0], apart), 1, 0, shape[0] / parts), shape)};
}

ShardingRule pad_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  auto dim = size_t(spec.attrs.get_int("dim"));
  const Shape& block = spec.inputs[0].shape;
  if (int64_t parts = parts_of(spec.attrs); parts > 1) return rows_in_parts_rule(block, outputs[0].shape, parts);
  bool is_block = spec.attrs.get_int("before") % block[dim] == 0 && spec.attrs.get_int("after") % block[dim] == 0;
  return block_rule(block, outputs[0].shape, dim, is_block, 1);
}
void pad_of_part(Attrs& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  auto dim = size_t(attrs.get_int("dim"));
  int64_t before = attrs.get_int("before"), after = attrs.get_int("after"), rest = outputs[0][dim] - inputs[0][dim];
  if (int64_t parts = parts_of(attrs); parts > 1) {
    attrs = {{"after", after}, {"before", before}, {"dim", int64_t(dim)}};
    if (rest > after) attrs.set("parts", rest / after);
    return;
  }
  attrs.set("before", before * rest / std::max<int64_t>(before + after, 1));
  attrs.set("after", after * rest / std::max<int64_t>(before + after, 1));
}

ValueTypes infer_concat(const NodeSpec& spec) {
  size_t dim = checked_dim(spec);
  Shape shape = spec.inputs[0].shape;
  shape[dim] = 0;
  for (const ValueType& type : spec.inputs) {
    Shape like = type.shape;
    if (like.size() == shape.size()) like[dim] = shape[dim];
    if (like != shape || type.dtype != spec.inputs[0].dtype)
      user_error("[concat] expected tensors like {} but for dim {}, got {}", to_string(spec.inputs[0]), dim,
                 to_string(type));
    shape[dim] += type.shape[dim];
  }
  return {{spec.inputs[0].dtype, shape}};
}
ShardingRule concat_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  auto dim = size_t(spec.attrs.get_int("dim"));
  const Shape& block = spec.inputs[0].shape;
  bool equal = std::all_of(spec.inputs.begin(), spec.inputs.end(), [&](const auto& x) { return x.shape == block; });
  ShardingRule rule = block_rule(block, outputs[0].shape, dim, equal, spec.inputs.size());
  for (size_t i = 0; !equal && i < spec.inputs.size(); ++i)
    rule.inputs[i][dim] = {rule.whole(spec.inputs[i].shape[dim])};
  return rule;
}
void concat_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  auto dim = size_t(node.attrs.get_int("dim"));
  int64_t at = 0;
  for (const HostTensor* x : in) {
    copy_range(*x, 0, out[0], at, dim, x->shape()[dim]);
    at += x->shape()[dim];
  }
}
ValueIds concat_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  int64_t dim = node.attrs.get_int("dim"), at = 0;
  ValueIds grads;
  for (ValueId input : node.inputs) {
    int64_t size = g.shape(input)[size_t(dim)];
    grads.push_back(slice(g, dy[0], dim, at, size));
    at += size;
  }
  return grads;
}

}  // namespace

int64_t slice_offset(const NodeSpec& spec) {
  const ValueType& from = spec.inputs[0];
  return spec.attrs.get_int("begin") * around(from.shape, size_t(spec.attrs.get_int("dim"))).inner *
         dtype_bytes(from.dtype);
}

bool may_view_slice(const NodeSpec& spec) {
  return around(spec.inputs[0].shape, checked_dim(spec)).outer == 1 && slice_offset(spec) % kViewAlignment == 0;
}

namespace op {
constinit const OpDef reshape = {.name = "reshape",
                                 .attrs = kReshapeAttrs,
                                 .infer = infer_reshape,
                                 .gradient = reshape_gradient,
                                 .reference = reshape_reference,
                                 .cost = view_cost,
                                 .fusion = Fusion::kView,
                                 .sharding = {.rule = reshape_rule, .of_part = set_part_shape}};
constinit const OpDef transpose = {.name = "transpose",
                                   .attrs = kTransposeAttrs,
                                   .infer = infer_transpose,
                                   .gradient = transpose_gradient,
                                   .reference = transpose_reference,
                                   .cost = move_cost,
                                   .sharding = {.rule = transpose_rule}};
constinit const OpDef slice = {.name = "slice",
                               .attrs = kSliceAttrs,
                               .infer = infer_slice,
                               .gradient = slice_gradient,
                               .reference = slice_reference,
                               .cost = move_cost,
                               .sharding = {.rule = slice_rule, .of_part = slice_of_part}};
constinit const OpDef slice_view = {.name = "slice_view",
                                    .attrs = kSliceAttrs,
                                    .infer = infer_slice_view,
                                    .gradient = slice_gradient,
                                    .reference = slice_reference,
                                    .cost = view_cost,
                                    .fusion = Fusion::kView,
                                    .sharding = {.rule = slice_rule, .of_part = slice_of_part}};
constinit const OpDef pad = {.name = "pad",
                             .attrs = kPadAttrs,
                             .infer = infer_pad,
                             .gradient = pad_gradient,
                             .reference = pad_reference,
                             .cost = move_cost,
                             .sharding = {.rule = pad_rule, .of_part = pad_of_part}};
constinit const OpDef concat = {.name = "concat",
                                .max_inputs = -1,
                                .attrs = kConcatAttrs,
                                .infer = infer_concat,
                                .gradient = concat_gradient,
                                .reference = concat_reference,
                                .cost = move_cost,
                                .sharding = {.rule = concat_rule}};
}  // namespace op

ValueId reshape(GraphBuilder& g, ValueId a, Shape shape) {
  int64_t known = 1, *free = nullptr;
  for (int64_t& d : shape) d == -1 ? void(free = &d) : void(known *= d);
  if (free) *free = num_elements(g.shape(a)) / known;
  if (shape == g.shape(a)) return a;
  return g.add1(op::reshape, {a}, {{"shape", std::move(shape)}});
}
ValueId transpose(GraphBuilder& g, ValueId a, std::vector<int64_t> perm) {
  return g.add1(op::transpose, {a}, {{"perm", std::move(perm)}});
}
ValueId slice(GraphBuilder& g, ValueId a, int64_t dim, int64_t begin, int64_t size) {
  if (begin == 0 && size_t(dim) < g.shape(a).size() && size == g.shape(a)[size_t(dim)]) return a;
  return g.add1(op::slice, {a}, {{"begin", begin}, {"dim", dim}, {"size", size}});
}
ValueId pad(GraphBuilder& g, ValueId a, int64_t dim, int64_t before, int64_t after, int64_t parts) {
  if (before == 0 && after == 0) return a;
  Attrs attrs{{"after", after}, {"before", before}, {"dim", dim}};
  if (parts > 1) attrs.set("parts", parts);
  return g.add1(op::pad, {a}, std::move(attrs));
}
ValueId concat(GraphBuilder& g, ValueIds values, int64_t dim) {
  return g.add1(op::concat, std::move(values), {{"dim", dim}});
}

}  // namespace tokamak
