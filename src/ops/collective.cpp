// The collectives, and part, which takes what one rank has of a value that all of them have.

#include "ops/collective.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/interpret.h"
#include "ops/movement.h"

#include <algorithm>
#include <bit>

namespace tokamak {
namespace {

using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kReduceAttrs[] = {{"axis"}, {"ordered", false}, {"reduction"}, {"size"}};
constexpr AttrDef kScatterAttrs[] = {{"axis"}, {"blocks", false}, {"dims"}, {"ordered", false}, {"size"}};
constexpr AttrDef kGatherAttrs[] = {{"axis"}, {"blocks", false}, {"dims"}, {"size"}};
constexpr AttrDef kTwoDimsAttrs[] = {{"axis"},     {"blocks", false}, {"dim"}, {"from_blocks", false},
                                     {"from_dim"}, {"size"}};
constexpr AttrDef kPermuteAttrs[] = {{"axis"}, {"size"}, {"step"}};
constexpr AttrDef kPartAttrs[] = {{"blocks", false}, {"dim"}, {"size"}};
constexpr std::string_view kNoGradient = "collectives are appended after differentiation";

std::string axis_of(const Node& node) { return node.attrs.get_string("axis"); }
int64_t size_of(const Attrs& attrs) { return attrs.get_int("size"); }

// Calls visit(element of the whole, element of the part) for all elements of part `index`.
template <typename Visit>
void for_each_of_part(const DimParts& p, int64_t index, const Visit& visit) {
  for (int64_t o = 0; o < p.outer; ++o)
    for (int64_t i = 0; i < p.inner; ++i) visit((o * p.parts + index) * p.inner + i, o * p.inner + i);
}

// The shape with dim `at` made of `times` as many, and then cut into `into` parts.
void scale_dim(const NodeSpec& spec, Shape& shape, CutDim at, int64_t times, int64_t into, size_t operand = 0) {
  bool has_dim = at.dim >= 0 && at.dim < int64_t(shape.size()) && at.blocks >= 1 && times >= 1 && into >= 1;
  if (!has_dim || shape[size_t(at.dim)] * times % (at.blocks * into) != 0 || shape[size_t(at.dim)] % at.blocks != 0)
    user_error("[{}] expected a dim of {} blocks for {} ranks, got dim {} of {}", spec.op.name, at.blocks,
               std::max(times, into), at.dim, to_string(spec.inputs[operand]));
  shape[size_t(at.dim)] = shape[size_t(at.dim)] * times / into;
}

void check_axis(const NodeSpec& spec) {
  if (size_of(spec.attrs) < 1 || spec.attrs.get_string("axis").empty())
    user_error("[{}] expected an axis of one rank or more, got '{}' of {}", spec.op.name, spec.attrs.get_string("axis"),
               size_of(spec.attrs));
  for (const ValueType& type : spec.inputs)
    if (type.dtype != spec.inputs[0].dtype)
      user_error("[{}] expected tensors of one type, got {} and {}", spec.op.name, to_string(spec.inputs[0]),
                 to_string(type));
  if (is_ordered(spec.attrs) && !std::has_single_bit(uint64_t(size_of(spec.attrs))))
    user_error("[{}] expected a power of two of ranks for an ordered sum, got {}", spec.op.name, size_of(spec.attrs));
}

ValueTypes infer_reduce(const NodeSpec& spec) {
  check_axis(spec);
  Reduction reduction = parse_reduction(spec.attrs.get_string("reduction"));
  if (is_ordered(spec.attrs) && reduction != Reduction::kSum)
    user_error("[all_reduce] expected sums where they are ordered");
  return spec.inputs;
}
// Every input with its dim made of `times` as many and cut into `into` parts.
ValueTypes infer_dims(const NodeSpec& spec, int64_t times, int64_t into) {
  check_axis(spec);
  for (const char* name : {"dims", "blocks"})
    if (spec.attrs.find(name) && spec.attrs.get_ints(name).size() != spec.inputs.size())
      user_error("[{}] expected {} for each of {} tensors, got {}", spec.op.name, name, spec.inputs.size(),
                 spec.attrs.get_ints(name).size());
  std::vector<CutDim> at = cut_dims(spec.attrs);
  ValueTypes types = spec.inputs;
  for (size_t i = 0; i < types.size(); ++i) scale_dim(spec, types[i].shape, at[i], times, into, i);
  return types;
}
ValueTypes infer_scatter(const NodeSpec& spec) { return infer_dims(spec, 1, size_of(spec.attrs)); }
ValueTypes infer_gather(const NodeSpec& spec) { return infer_dims(spec, size_of(spec.attrs), 1); }
ValueTypes infer_all_to_all(const NodeSpec& spec) {
  check_axis(spec);
  ValueType type = spec.inputs[0];
  CutDim from = from_dim(spec.attrs), to = cut_dim(spec.attrs);
  if (from.dim == to.dim) user_error("[all_to_all] expected two dims, got dim {} twice", to.dim);
  scale_dim(spec, type.shape, from, size_of(spec.attrs), 1);
  scale_dim(spec, type.shape, to, 1, size_of(spec.attrs));
  return {type};
}
ValueTypes infer_permute(const NodeSpec& spec) {
  check_axis(spec);
  int64_t step = spec.attrs.get_int("step"), size = size_of(spec.attrs);
  if (step < 0 || step >= size) user_error("[permute] expected a step below {}, got {}", size, step);
  return spec.inputs;
}
ValueTypes infer_part(const NodeSpec& spec) {
  if (!spec.inputs[1].shape.empty())
    user_error("[part] expected the coordinate to be one number, got {}", to_string(spec.inputs[1]));
  ValueType type = spec.inputs[0];
  scale_dim(spec, type.shape, cut_dim(spec.attrs), 1, size_of(spec.attrs));
  return {type};
}

// The lower half of the ranks and the upper half, each added in the same way; each addition is rounded.
HostTensor tree_sum(Tensors in) {
  if (in.size() == 1) return *in[0];
  HostTensor sum = tree_sum(in.first(in.size() / 2)), upper = tree_sum(in.subspan(in.size() / 2));
  DType dtype = sum.type.dtype;
  for (int64_t i = 0; i < sum.size(); ++i)
    sum[i] = dtype == DType::kF32 ? double(float(sum[i] + upper[i])) : round_to(dtype, sum[i] + upper[i]);
  return sum;
}

HostTensor reduced(const Node& node, Tensors in, Reduction reduction) {
  if (is_ordered(node.attrs)) return tree_sum(in);
  bool largest = reduction == Reduction::kMax;
  HostTensor all = *in[0];
  for (const HostTensor* x : in.subspan(1))
    for (int64_t i = 0; i < all.size(); ++i) all[i] = largest ? std::max(all[i], (*x)[i]) : all[i] + (*x)[i];
  return all;
}

void take_part(const HostTensor& whole, CutDim at, int64_t parts, int64_t index, HostTensor& part) {
  for_each_of_part(parts_of(whole.shape(), at, parts), index, [&](int64_t w, int64_t p) { part[p] = whole[w]; });
}

HostTensor gathered(Tensors in, CutDim at) {
  ValueType type = in[0]->type;
  type.shape[size_t(at.dim)] *= int64_t(in.size());
  HostTensor whole(std::move(type));
  DimParts parts = parts_of(whole.shape(), at, int64_t(in.size()));
  for (size_t r = 0; r < in.size(); ++r)
    for_each_of_part(parts, int64_t(r), [&](int64_t w, int64_t p) { whole[w] = (*in[r])[p]; });
  return whole;
}

void reduce_together(const Node& node, size_t, Tensors in, std::span<HostTensor> out) {
  for (HostTensor& y : out) y.data = reduced(node, in, parse_reduction(node.attrs.get_string("reduction"))).data;
}
void scatter_together(const Node& node, size_t i, Tensors in, std::span<HostTensor> out) {
  HostTensor sum = reduced(node, in, Reduction::kSum);
  CutDim at = cut_dims(node.attrs)[i];
  for (size_t r = 0; r < out.size(); ++r) take_part(sum, at, int64_t(out.size()), int64_t(r), out[r]);
}
void gather_together(const Node& node, size_t i, Tensors in, std::span<HostTensor> out) {
  for (HostTensor& y : out) y.data = gathered(in, cut_dims(node.attrs)[i]).data;
}
void exchange_together(const Node& node, size_t, Tensors in, std::span<HostTensor> out) {
  HostTensor whole = gathered(in, from_dim(node.attrs));
  for (size_t r = 0; r < out.size(); ++r)
    take_part(whole, cut_dim(node.attrs), int64_t(out.size()), int64_t(r), out[r]);
}

void permute_together(const Node& node, size_t, Tensors in, std::span<HostTensor> out) {
  auto step = size_t(node.attrs.get_int("step"));
  for (size_t r = 0; r < out.size(); ++r) out[(r + step) % out.size()].data = in[r]->data;
}

// On an axis of one rank all of them give what they are given.
void alone_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  if (size_of(node.attrs) != 1)
    user_error("[{}] expected {} ranks (interpret_ranks), got one", node.op->name, size_of(node.attrs));
  for (size_t i = 0; i < in.size(); ++i) out[i].data = in[i]->data;
}
void part_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  int64_t index = int64_t((*in[1])[0]);
  if (index < 0 || index >= size_of(node.attrs))
    user_error("[part] expected a coordinate below {}, got {}", size_of(node.attrs), index);
  take_part(*in[0], cut_dim(node.attrs), size_of(node.attrs), index, out[0]);
}

// What a ring sends: each of n ranks n - 1 of n parts, and twice as much to reduce and gather.
Cost link_cost(const NodeSpec& spec, double bytes, double rounds) {
  auto n = double(size_of(spec.attrs));
  return {0, rounds * 2 * bytes, rounds * bytes * (n - 1) / n};
}
double total_bytes(std::span<const ValueType> types) {
  double bytes = 0;
  for (const ValueType& type : types) bytes += double(num_bytes(type));
  return bytes;
}
Cost reduce_cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  return link_cost(spec, total_bytes(outputs), 2);
}
Cost gather_cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  return link_cost(spec, total_bytes(outputs), 1);
}
Cost scatter_cost(const NodeSpec& spec, std::span<const ValueType>) {
  return link_cost(spec, total_bytes(ValueTypes(spec.inputs)), 1);
}
Cost permute_cost(const NodeSpec&, std::span<const ValueType> outputs) {
  return {0, 2 * total_bytes(outputs), total_bytes(outputs)};
}
Cost part_cost(const NodeSpec&, std::span<const ValueType> outputs) { return {0, 2 * double(num_bytes(outputs[0]))}; }

constexpr OpDef collective(std::string_view name, int max_inputs, std::span<const AttrDef> attrs,
                           decltype(OpDef::infer) infer, decltype(OpDef::together) together,
                           decltype(OpDef::cost) cost) {
  return {.name = name,
          .max_inputs = max_inputs,
          .attrs = attrs,
          .infer = infer,
          .no_gradient = kNoGradient,
          .reference = alone_reference,
          .cost = cost,
          .autocast = Autocast::kFull,
          .effects = axis_of,
          .together = together};
}

Attrs dims_attrs(const MeshAxis& axis, CutDim at) {
  Attrs attrs{{"axis", axis.name}, {"size", axis.size}};
  set_cut_dims(attrs, {at});
  return attrs;
}

}  // namespace

namespace op {
constinit const OpDef all_reduce =
    collective("all_reduce", -1, kReduceAttrs, infer_reduce, reduce_together, reduce_cost);
constinit const OpDef reduce_scatter =
    collective("reduce_scatter", -1, kScatterAttrs, infer_scatter, scatter_together, scatter_cost);
constinit const OpDef all_gather =
    collective("all_gather", -1, kGatherAttrs, infer_gather, gather_together, gather_cost);
constinit const OpDef all_to_all =
    collective("all_to_all", 1, kTwoDimsAttrs, infer_all_to_all, exchange_together, scatter_cost);
constinit const OpDef permute = collective("permute", 1, kPermuteAttrs, infer_permute, permute_together, permute_cost);
constinit const OpDef part = {.name = "part",
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .attrs = kPartAttrs,
                              .infer = infer_part,
                              .no_gradient = kNoGradient,
                              .reference = part_reference,
                              .cost = part_cost,
                              .autocast = Autocast::kFull};
}  // namespace op

CutDim cut_dim(const Attrs& attrs) { return {attrs.get_int("dim"), attrs.get_int("blocks", 1)}; }
CutDim from_dim(const Attrs& attrs) { return {attrs.get_int("from_dim"), attrs.get_int("from_blocks", 1)}; }

DimParts parts_of(const Shape& whole, CutDim at, int64_t parts) {
  DimParts p{at.blocks, parts, whole[size_t(at.dim)] / (at.blocks * parts)};
  for (int64_t d = 0; d < at.dim; ++d) p.outer *= whole[size_t(d)];
  for (size_t d = size_t(at.dim) + 1; d < whole.size(); ++d) p.inner *= whole[d];
  return p;
}

ValueId mirror_parts(GraphBuilder& g, ValueId x, CutDim at, int64_t parts) {
  const Shape whole = g.shape(x);
  DimParts p = parts_of(whole, at, parts);
  TOKAMAK_CHECK(at.blocks % 2 == 0, "{} blocks have no pairs", at.blocks);
  ValueId pairs = reshape(g, x, {p.outer / 2, 2 * parts, p.inner});
  ValueIds order{slice(g, pairs, 1, 0, parts)};
  for (int64_t part = 2 * parts; part-- > parts;) order.push_back(slice(g, pairs, 1, part, 1));
  return reshape(g, concat(g, std::move(order), 1), whole);
}

std::vector<CutDim> cut_dims(const Attrs& attrs) {
  std::vector<CutDim> at;
  for (int64_t dim : attrs.get_ints("dims")) at.push_back({dim});
  if (!attrs.find("blocks")) return at;
  const std::vector<int64_t>& blocks = attrs.get_ints("blocks");
  for (size_t i = 0; i < at.size(); ++i) at[i].blocks = blocks[i];
  return at;
}

void set_cut_dims(Attrs& attrs, const std::vector<CutDim>& at) {
  std::vector<int64_t> dims, blocks;
  for (const CutDim& cut : at) dims.push_back(cut.dim), blocks.push_back(cut.blocks);
  bool any_blocks = std::any_of(blocks.begin(), blocks.end(), [](int64_t n) { return n != 1; });
  attrs.set("dims", dims);
  if (any_blocks || attrs.find("blocks")) attrs.set("blocks", blocks);
}

bool is_ordered(const Attrs& attrs) { return attrs.find("ordered") && attrs.get_bool("ordered"); }

ValueId all_reduce(GraphBuilder& g, ValueId x, const MeshAxis& axis, Reduction reduction) {
  std::string name(reduction_name(reduction));
  return g.add1(op::all_reduce, {x}, {{"axis", axis.name}, {"reduction", name}, {"size", axis.size}});
}
ValueId ordered_all_reduce(GraphBuilder& g, ValueId x, const MeshAxis& axis) {
  return g.add1(op::all_reduce, {x},
                {{"axis", axis.name}, {"ordered", true}, {"reduction", "sum"}, {"size", axis.size}});
}
ValueId reduce_scatter(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim to) {
  return g.add1(op::reduce_scatter, {x}, dims_attrs(axis, to));
}
ValueId ordered_reduce_scatter(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim to) {
  Attrs attrs = dims_attrs(axis, to);
  attrs.set("ordered", true);
  return g.add1(op::reduce_scatter, {x}, std::move(attrs));
}
ValueId all_gather(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim from) {
  return g.add1(op::all_gather, {x}, dims_attrs(axis, from));
}
ValueId all_to_all(GraphBuilder& g, ValueId x, const MeshAxis& axis, CutDim from, CutDim to) {
  Attrs attrs{{"axis", axis.name}, {"dim", to.dim}, {"from_dim", from.dim}, {"size", axis.size}};
  if (to.blocks != 1) attrs.set("blocks", to.blocks);
  if (from.blocks != 1) attrs.set("from_blocks", from.blocks);
  return g.add1(op::all_to_all, {x}, std::move(attrs));
}
ValueId permute(GraphBuilder& g, ValueId x, const MeshAxis& axis, int64_t step) {
  return g.add1(op::permute, {x}, {{"axis", axis.name}, {"size", axis.size}, {"step", step}});
}
ValueId part(GraphBuilder& g, ValueId x, ValueId coordinate, int64_t size, CutDim to) {
  Attrs attrs{{"dim", to.dim}, {"size", size}};
  if (to.blocks != 1) attrs.set("blocks", to.blocks);
  return g.add1(op::part, {x, coordinate}, std::move(attrs));
}

}  // namespace tokamak
