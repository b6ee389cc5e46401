#include "ops/context_attention.h"

#include "graph/builder.h"
#include "ops/attention.h"
#include "ops/attention_operands.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <limits>

namespace tokamak {
namespace {

// Its exponential is 0 whatever score it is taken from.
constexpr double kLargeLse = 1e30;

class ContextAttention {
 public:
  ContextAttention(GraphBuilder& g, const Node& part, ValueId qkv, const PlacedCut& cut)
      : g_(g), axis_(cut.axis), coordinate_(cut.coordinate), qkv_(qkv), time_(g.shape(qkv)[1]),
        width_(g.shape(qkv)[2] / 3), whole_attrs_(part.attrs) {
    whole_attrs_.set("causal", false);
    q_ = slice(g, qkv, 2, 0, width_);
    kv_ = all_gather(g, slice(g, qkv, 2, width_, 2 * width_), axis_, {1});  // (B, T, 2C)
  }

  /// Ranks whose keys others than they may see.
  int64_t earlier_ranks() const { return axis_.size - 1; }
  /// The rank's queries with the keys and values of another, packed.
  ValueId packed(int64_t rank) { return concat(g_, {q_, slice(g_, kv_, 1, rank * time_, time_)}, 2); }
  /// `lse`, and `unseen` on those ranks that do not see this one's keys.
  ValueId seen(int64_t rank, ValueId lse, double unseen) {
    return select(g_, less(g_, coordinate_, constant(g_, double(rank) + 0.5)), constant(g_, unseen), lse);
  }
  /// Attributes for the keys of another rank: all are seen.
  const Attrs& whole_attrs() const { return whole_attrs_; }

  ValueId queries(ValueId dqkv) { return slice(g_, dqkv, 2, 0, width_); }
  ValueId keys(ValueId dqkv) { return slice(g_, dqkv, 2, width_, 2 * width_); }
  /// Of gradients of each earlier rank's keys and values, the sum over all ranks of this one's.
  ValueId to_owners(std::vector<ValueId> dkv) {
    dkv.push_back(sub(g_, dkv[0], dkv[0]));  // nobody sees the last one's but itself
    return reduce_scatter(g_, concat(g_, std::move(dkv), 1), axis_, {1});
  }

 private:
  GraphBuilder& g_;
  const MeshAxis& axis_;
  ValueId coordinate_, qkv_;
  int64_t time_, width_;
  Attrs whole_attrs_;
  ValueId q_, kv_;
};

ValueId sum_of(GraphBuilder& g, const std::vector<ValueId>& values) {
  ValueId sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) sum = add(g, sum, values[i]);
  return sum;
}

struct Merged {
  ValueId out, lse;
};
// Attention to all keys, from that to some of them each: outs (B, t, C), lses (B, H, t).
Merged merge(GraphBuilder& g, const std::vector<ValueId>& outs, const std::vector<ValueId>& lses) {
  ValueId top = lses[0];
  for (size_t i = 1; i < lses.size(); ++i) top = maximum(g, top, lses[i]);
  std::vector<ValueId> shares, terms;
  for (ValueId lse : lses) shares.push_back(exp(g, sub(g, lse, top)));
  ValueId lse = add(g, log(g, sum_of(g, shares)), top);
  const Shape rows = g.shape(outs[0]), heads = g.shape(lse);
  int64_t B = heads[0], H = heads[1], t = heads[2];
  for (size_t i = 0; i < outs.size(); ++i) {
    ValueId weight = transpose(g, exp(g, sub(g, lses[i], lse)), {0, 2, 1});  // (B, t, H)
    terms.push_back(mul(g, reshape(g, outs[i], {B, t, H, -1}), reshape(g, weight, {B, t, H, 1})));
  }
  return {cast(g, reshape(g, sum_of(g, terms), rows), g.type(outs[0]).dtype), lse};
}

}  // namespace

bool can_cut_time(const NodeSpec& spec) {
  AttentionOperands at = attention_operands(spec.op, spec.attrs, spec.inputs.size());
  return spec.attrs.get_bool("causal") && at.rng < 0 && at.documents < 0 && !spec.attrs.get_bool("sums", false);
}

std::vector<ValueId> place_attention(GraphBuilder& g, const Node& part, std::span<const ValueId> in,
                                     const PlacedCut& cut) {
  ContextAttention context(g, part, in[0], cut);
  std::vector<ValueId> own = g.add(op::attention, {in[0]}, part.attrs), outs{own[0]}, lses{own[1]};
  for (int64_t rank = 0; rank < context.earlier_ranks(); ++rank) {
    std::vector<ValueId> other = g.add(op::attention, {context.packed(rank)}, context.whole_attrs());
    outs.push_back(other[0]);
    lses.push_back(context.seen(rank, other[1], -std::numeric_limits<double>::infinity()));
  }
  auto [out, lse] = merge(g, outs, lses);
  return {out, lse};
}

std::vector<ValueId> place_attention_grad(GraphBuilder& g, const Node& part, std::span<const ValueId> in,
                                          const PlacedCut& cut) {
  ValueId out = in[1], lse = in[2], dout = in[3];
  ContextAttention context(g, part, in[0], cut);
  ValueId own = g.add1(op::attention_grad, {in[0], out, lse, dout}, part.attrs);
  std::vector<ValueId> dq{context.queries(own)}, dkv;
  for (int64_t rank = 0; rank < context.earlier_ranks(); ++rank) {
    ValueId seen = context.seen(rank, lse, kLargeLse);
    ValueId other = g.add1(op::attention_grad, {context.packed(rank), out, seen, dout}, context.whole_attrs());
    dq.push_back(context.queries(other));
    dkv.push_back(context.keys(other));
  }
  ValueId keys = add(g, context.keys(own), context.to_owners(std::move(dkv)));
  return {concat(g, {sum_of(g, dq), keys}, 2)};
}

}  // namespace tokamak
