#include "ops/context_attention_parts.h"

#include "graph/builder.h"
#include "ops/attention.h"
#include "ops/attention_operands.h"
#include "ops/context_attention.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <limits>

namespace tokamak {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();  // an lse

// What belongs to a rank's two chunks.
struct Chunks {
  ValueId early, late;
};
Chunks halves(GraphBuilder& g, ValueId x, int64_t dim) {
  int64_t t = g.shape(x)[size_t(dim)] / 2;
  return {slice(g, x, dim, 0, t), slice(g, x, dim, t, t)};
}

// (B, 2t, ...) <-> (2B, t, ...): the chunks as samples of their own.
ValueId as_samples(GraphBuilder& g, ValueId x) {
  const Shape& shape = g.shape(x);
  return reshape(g, x, {2 * shape[0], shape[1] / 2, shape[2]});
}
ValueId as_halves(GraphBuilder& g, ValueId x) {
  const Shape& shape = g.shape(x);
  return reshape(g, x, {shape[0] / 2, 2 * shape[1], shape[2]});
}
// (B, H, 2t) <-> (2B, H, t)
ValueId lse_as_samples(GraphBuilder& g, ValueId lse) {
  const Shape s = g.shape(lse);
  ValueId chunks = transpose(g, reshape(g, lse, {s[0], s[1], 2, s[2] / 2}), {0, 2, 1, 3});
  return reshape(g, chunks, {2 * s[0], s[1], s[2] / 2});
}
ValueId lse_as_halves(GraphBuilder& g, ValueId lse) {
  const Shape s = g.shape(lse);
  ValueId chunks = transpose(g, reshape(g, lse, {s[0] / 2, 2, s[1], s[2]}), {0, 2, 1, 3});
  return reshape(g, chunks, {s[0] / 2, s[1], 2 * s[2]});
}

// The same type as both have: a comparison has its own.
ValueId choose(GraphBuilder& g, ValueId condition, ValueId a, ValueId b) {
  return cast(g, select(g, condition, a, b), g.type(a).dtype);
}

// The keys and values of all ranks, and which of them meet this rank's queries. Legend: N ranks; pairs are samples,
// rank by rank, and so are turns.
class Pairs {
 public:
  Pairs(GraphBuilder& g, const Node& node, std::span<const ValueId> in)
      : g_(g), coordinate_(in[2]), ranks_(g.shape(in[1])[0] / g.shape(in[0])[0]), batch_(g.shape(in[0])[0]),
        width_(g.shape(in[0])[2] / 3), attrs_(node.attrs), q_(halves(g, queries(in[0]), 1)),
        kv_(halves(g, in[1], 1)) {  // (N B, t, 2C)
    attrs_.set("causal", false);
  }

  /// Of a rank's own chunks.
  Attrs own_attrs() const {
    Attrs attrs = attrs_;
    attrs.set("causal", true);
    return attrs;
  }
  /// Of pairs and turns: both chunks see each other whole.
  const Attrs& attrs() const { return attrs_; }

  /// Late queries with the early chunks of all ranks, packed: (N B, t, 3C).
  ValueId pairs() { return concat(g_, {in_pairs(q_.late), kv_.early}, 2); }
  /// The same of all pairs (B, ...) -> (N B, ...).
  ValueId in_pairs(ValueId late) { return concat(g_, ValueIds(size_t(ranks_), late), 0); }

  /// What meets in the turns, packed: ((N - 1) B, t, 3C).
  ValueId turns() {
    int64_t samples = num_turns() * batch_;
    Chunks kv{slice(g_, kv_.early, 0, 0, samples), slice(g_, kv_.late, 0, batch_, samples)};
    return concat(g_, {in_turns(q_), in_turns(kv)}, 2);
  }
  /// Of each turn's chunk, (B, ...) or ((N - 1) B, ...) -> ((N - 1) B, ...).
  ValueId in_turns(const Chunks& x) {
    Shape shape = g_.shape(x.early);
    shape[0] = num_turns() * batch_;
    return reshape(g_, choose(g_, are_early(), by_turn(x.early), by_turn(x.late)), std::move(shape));
  }
  /// Of what all turns gave, ((N - 1) B, ...), that for early and that for late chunks; elsewhere 0.
  Chunks out_of_turns(ValueId x) {
    const Shape shape = g_.shape(x);
    ValueId rows = by_turn(x), zero = constant(g_, 0, {}, g_.type(x).dtype);
    return {reshape(g_, choose(g_, are_early(), rows, zero), shape),
            reshape(g_, choose(g_, are_early(), zero, rows), shape)};
  }

  int64_t num_pairs() const { return ranks_; }
  int64_t num_turns() const { return ranks_ - 1; }
  /// Of one pair or turn: (B, ...).
  ValueId of_one(ValueId x, int64_t index) { return slice(g_, x, 0, index * batch_, batch_); }
  /// Of a turn the chunk for which it was has this, and the other one that.
  Chunks out_of_turn(int64_t turn, ValueId x, double other) {
    ValueId is_early = less(g_, constant(g_, double(turn) + 0.5), coordinate_),
            that = constant(g_, other, {}, g_.type(x).dtype);
    return {choose(g_, is_early, x, that), choose(g_, is_early, that, x)};
  }

  ValueId queries(ValueId qkv) { return slice(g_, qkv, 2, 0, width_); }
  ValueId keys(ValueId qkv) { return slice(g_, qkv, 2, width_, 2 * width_); }
  /// Gradients of all keys and values, (N B, 2t, 2C), of those of the rank's own (B, 2t, 2C), of pairs and of turns.
  ValueId of_all_ranks(ValueId of_own, ValueId of_pairs, ValueId of_turns) {
    Chunks turns = out_of_turns(of_turns);
    ValueId early = add(g_, of_pairs, pad(g_, turns.early, 0, 0, batch_)), late = pad(g_, turns.late, 0, batch_, 0);
    ValueId others = concat(g_, {early, late}, 1),
            ahead = sub(g_, iota(g_, {ranks_, 1}, 0), cast(g_, coordinate_, DType::kF32));
    ValueId is_own = less(g_, mul(g_, ahead, ahead), constant(g_, 0.5));  // (N, 1)
    ValueId own = reshape(g_, of_own, {1, -1}), zero = constant(g_, 0, {}, g_.type(of_own).dtype);
    ValueId added = add(g_, reshape(g_, others, {ranks_, -1}), choose(g_, is_own, own, zero));
    return reshape(g_, added, g_.shape(others));
  }

 private:
  ValueId are_early() { return less(g_, iota(g_, {num_turns(), 1}, 0), coordinate_); }
  ValueId by_turn(ValueId x) { return reshape(g_, x, {g_.shape(x)[0] / batch_, -1}); }

  GraphBuilder& g_;
  ValueId coordinate_;
  int64_t ranks_, batch_, width_;
  Attrs attrs_;
  Chunks q_, kv_;
};

ValueId sum_of(GraphBuilder& g, const ValueIds& values) {
  ValueId sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) sum = add(g, sum, values[i]);
  return sum;
}

// Attention of one chunk's queries to some keys each: (B, t, C), and lses (B, H, t).
struct Parts {
  ValueIds outs, lses;
  void add(ValueId out, ValueId lse) { outs.push_back(out), lses.push_back(lse); }
};
struct Merged {
  ValueId out, lse;
};
Merged merge(GraphBuilder& g, const Parts& parts) {
  ValueId top = parts.lses[0];
  for (size_t i = 1; i < parts.lses.size(); ++i) top = maximum(g, top, parts.lses[i]);
  ValueIds shares, terms;
  for (ValueId lse : parts.lses) shares.push_back(exp(g, sub(g, lse, top)));
  ValueId lse = add(g, log(g, sum_of(g, shares)), top);
  const Shape rows = g.shape(parts.outs[0]), heads = g.shape(lse);
  int64_t B = heads[0], H = heads[1], t = heads[2];
  for (size_t i = 0; i < parts.outs.size(); ++i) {
    ValueId weight = transpose(g, exp(g, sub(g, parts.lses[i], lse)), {0, 2, 1});  // (B, t, H)
    ValueId out = cast(g, reshape(g, parts.outs[i], {B, t, H, -1}), DType::kF32);
    terms.push_back(mul(g, out, reshape(g, weight, {B, t, H, 1})));
  }
  return {cast(g, reshape(g, sum_of(g, terms), rows), g.type(parts.outs[0]).dtype), lse};
}

ValueIds forward(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  Pairs all(g, node, in);
  ValueIds own = g.add(op::attention, {as_samples(g, in[0])}, all.own_attrs());
  ValueIds pairs = g.add(op::attention, {all.pairs()}, all.attrs());
  ValueIds turns = g.add(op::attention, {all.turns()}, all.attrs());
  Chunks own_out = halves(g, as_halves(g, own[0]), 1), own_lse = halves(g, lse_as_halves(g, own[1]), 2);
  Parts early, late;
  early.add(own_out.early, own_lse.early);
  late.add(own_out.late, own_lse.late);
  for (int64_t pair = 0; pair < all.num_pairs(); ++pair)
    late.add(all.of_one(pairs[0], pair), all.of_one(pairs[1], pair));
  for (int64_t turn = 0; turn < all.num_turns(); ++turn) {
    ValueId out = all.of_one(turns[0], turn);
    Chunks lse = all.out_of_turn(turn, all.of_one(turns[1], turn), kUnseen);
    early.add(out, lse.early);
    late.add(out, lse.late);
  }
  Merged of_early = merge(g, early), of_late = merge(g, late);
  return {concat(g, {of_early.out, of_late.out}, 1), concat(g, {of_early.lse, of_late.lse}, 2)};
}

ValueIds backward(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  Pairs all(g, node, in);
  Chunks out = halves(g, in[3], 1), lse = halves(g, in[4], 2), dout = halves(g, in[5], 1);
  ValueId own = g.add1(op::attention_grad,
                       {as_samples(g, in[0]), as_samples(g, in[3]), lse_as_samples(g, in[4]), as_samples(g, in[5])},
                       all.own_attrs());
  own = as_halves(g, own);
  ValueId pairs =
      g.add1(op::attention_grad, {all.pairs(), all.in_pairs(out.late), all.in_pairs(lse.late), all.in_pairs(dout.late)},
             all.attrs());
  ValueId turns =
      g.add1(op::attention_grad, {all.turns(), all.in_turns(out), all.in_turns(lse), all.in_turns(dout)}, all.attrs());
  ValueId dkv = all.of_all_ranks(all.keys(own), all.keys(pairs), all.keys(turns));

  Chunks own_dq = halves(g, all.queries(own), 1);
  ValueIds early{own_dq.early}, late{own_dq.late};
  ValueId of_pairs = all.queries(pairs), of_turns = all.queries(turns);
  for (int64_t pair = 0; pair < all.num_pairs(); ++pair) late.push_back(all.of_one(of_pairs, pair));
  for (int64_t turn = 0; turn < all.num_turns(); ++turn) {
    Chunks dq = all.out_of_turn(turn, all.of_one(of_turns, turn), 0);
    early.push_back(dq.early);
    late.push_back(dq.late);
  }
  return {concat(g, {sum_of(g, early), sum_of(g, late)}, 1), dkv};
}

}  // namespace

bool has_parts(const Node& node) {
  if (node.op != &op::context_attention && node.op != &op::context_attention_grad) return false;
  return node.inputs.size() == size_t(node.op->min_inputs);
}

ValueIds context_attention_in_parts(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  return node.op == &op::context_attention ? forward(g, node, in) : backward(g, node, in);
}

}  // namespace tokamak
