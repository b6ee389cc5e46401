// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): a matrix moves along its
// momentum made orthogonal, and its blocks (q, k and v) each by itself. Blocks of one form are multiplied together.
// On a mesh each matrix is made orthogonal by one rank. Tables and vectors are AdamW's.
//   m = mu m + (1 - mu) g; o = orthogonal(mu m + (1 - mu) g, or m without Nesterov's step)
//   param = (1 - lr decay) param - lr scale o
// The scale makes updates as large as AdamW's (Liu et al., "Muon is scalable for LLM training", 2025), or is the first
// one. normuon divides the columns of o, what each output has, by the root of their mean squares over steps, and then
// gives the matrix its size (Li et al., "NorMuon: Making Muon more efficient and scalable", 2025).
#include "autodiff/newton_schulz.h"
#include "autodiff/optimizer_rule.h"
#include "base/divide.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/redistribute.h"
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

namespace tokamak {
namespace {

ValueType one_of_each_output(const ValueType& parameter, const ArgumentSpec& spec) {
  return {parameter.dtype, {parameter.shape[spec.transposed ? 0 : 1]}};
}

constexpr OptimizerState kMuonStates[] = {{"muon.m"}};
constexpr OptimizerState kNormuonStates[] = {{"muon.m"}, {"muon.v", one_of_each_output}};

const OptimizerRule* adamw_but_for_matrices(const Argument& parameter) {
  Role role = parameter.spec.role;
  bool is_of_block = role == Role::kMatrix || role == Role::kColumn || role == Role::kRow;
  return is_of_block && parameter.spec.global.size() == 2 ? nullptr : &adamw_rule;
}

bool matches_adamw(const OptimizerConfig& c) { return c.muon_scale == "rms"; }

double scale_of(double in, double out, const OptimizerConfig& c) {
  return matches_adamw(c) ? 0.2 * std::sqrt(std::max(in, out)) : std::sqrt(std::max(1.0, out / in));
}

/// What parameters have in common that are updated together: k blocks (rows, columns) of each, side by side.
struct Form {
  int64_t rows = 0, columns = 0;  // of a block here, which may be a part of the model's
  int64_t blocks = 1;
  double in = 0, out = 0;  // of a block in the model
  int64_t inputs_dim = 0;  // of a block: 0, or 1 where it is stored (out, in)
  auto operator<=>(const Form&) const = default;

  int64_t outputs() const { return inputs_dim == 0 ? columns : rows; }
};

Form form_of(GraphBuilder& g, ValueId parameter) {
  const ArgumentSpec& spec = g.graph().argument_of(parameter)->spec;
  int64_t inputs_dim = spec.transposed ? 1 : 0;
  auto in = double(spec.global[size_t(inputs_dim)]), out = double(spec.global[size_t(1 - inputs_dim)]);
  return {.rows = g.shape(parameter)[0],
          .columns = g.shape(parameter)[1] / spec.blocks,
          .blocks = spec.blocks,
          .in = in,
          .out = out / double(spec.blocks),
          .inputs_dim = inputs_dim};
}

// Values of one shape as one, with a dim for their number before it, and zeros up to `size`; and each of them again.
ValueId stacked(GraphBuilder& g, const ValueIds& values, int64_t size) {
  Shape one = g.shape(values[0]);
  one.insert(one.begin(), 1);
  ValueIds stack;
  for (ValueId value : values) stack.push_back(reshape(g, value, one));
  one[0] = size - int64_t(values.size());
  if (one[0] > 0) stack.push_back(constant(g, 0, one));
  return stack.size() == 1 ? stack[0] : concat(g, stack, 0);
}
ValueIds unstacked(GraphBuilder& g, ValueId stack, size_t count, const Shape& one) {
  ValueIds values;
  for (size_t i = 0; i < count; ++i) values.push_back(reshape(g, slice(g, stack, 0, int64_t(i), 1), one));
  return values;
}

// (n, rows, blocks x columns) <-> (n x blocks, rows, columns).
ValueId blocks_apart(GraphBuilder& g, ValueId matrices, const Form& f) {
  if (f.blocks == 1) return matrices;
  ValueId split = reshape(g, matrices, {g.shape(matrices)[0], f.rows, f.blocks, f.columns});
  return reshape(g, transpose(g, split, {0, 2, 1, 3}), {-1, f.rows, f.columns});
}
ValueId blocks_beside(GraphBuilder& g, ValueId blocks, const Form& f) {
  if (f.blocks == 1) return blocks;
  ValueId split = reshape(g, blocks, {g.shape(blocks)[0] / f.blocks, f.blocks, f.rows, f.columns});
  return reshape(g, transpose(g, split, {0, 2, 1, 3}), {-1, f.rows, f.blocks * f.columns});
}

/// Of normuon: what the columns of a parameter (its outputs) are multiplied by, and the next v.
struct Columns {
  ValueId factor, v;  // f32[outputs of all blocks]
};

// By what the outputs' mean squares `v` have become; blocks then have the size that they had, with its scale. All from
// the outputs' sums of squares, f32[outputs].
Columns normalized(GraphBuilder& g, ValueId sums, ValueId v, const Form& f, const OptimizerConfig& c) {
  constexpr double kEps = 1e-8;
  ValueId next = mix(g, mul(g, sums, constant(g, 1 / f.in)), v, c.beta2);
  ValueId root = add(g, sqrt(g, next), constant(g, kEps));
  const Shape by_block{f.blocks, f.outputs()};
  auto norms = [&](ValueId squares) {  // of the blocks, (blocks, 1)
    return sqrt(g, reduce_sum(g, reshape(g, squares, by_block), {1}, true));
  };
  ValueId even = norms(div(g, sums, mul(g, root, root)));
  ValueId size = matches_adamw(c) ? constant(g, 0.2 * std::sqrt(f.in * f.out))
                                  : mul(g, norms(sums), constant(g, scale_of(f.in, f.out, c)));
  ValueId of_block = div(g, size, add(g, even, constant(g, kEps)));
  return {reshape(g, div(g, of_block, reshape(g, root, by_block)), g.shape(v)), next};
}

/// Of parameters of one form, each in the shape that it has in the graph.
struct Directions {
  ValueIds steps, v;  // v: normuon's next state
};

// Of the stack, (n, rows, columns) for n momenta of f.
Directions directions(GraphBuilder& g, ValueId stack, const ValueIds& v, size_t count, const Form& f,
                      const WorkShares& shares, const OptimizerConfig& c) {
  const Shape all = g.shape(stack), one(all.begin() + 1, all.end());
  if (shares.ranks > 1) stack = redistribute(g, stack, shares.axes, 0);
  auto to_shares = [&](ValueId of_all) { return shares.ranks > 1 ? redistribute(g, of_all) : of_all; };
  ValueId blocks = orthogonalized(g, blocks_apart(g, stack, f));
  Directions made{unstacked(g, to_shares(blocks_beside(g, blocks, f)), count, one), {}};
  if (v.empty()) {
    for (ValueId& step : made.steps) step = mul(g, step, constant(g, scale_of(f.in, f.out, c)));
    return made;
  }
  // Over the last dim, as no kernel sums over one in the middle.
  ValueId by_output = f.inputs_dim == 1 ? blocks : transpose(g, blocks, {0, 2, 1});
  ValueId squares = reduce_sum(g, mul(g, by_output, by_output), {2}, false);
  ValueId of_outputs = to_shares(reshape(g, squares, {all[0], f.blocks * f.outputs()}));
  ValueIds sums = unstacked(g, of_outputs, count, {f.blocks * f.outputs()});
  for (size_t i = 0; i < count; ++i) {
    Columns columns = normalized(g, sums[i], v[i], f, c);
    bool along_rows = f.inputs_dim == 1;
    made.steps[i] = mul(g, made.steps[i], along_rows ? reshape(g, columns.factor, {f.rows, 1}) : columns.factor);
    made.v.push_back(columns.v);
  }
  return made;
}

// The new parameter and its states {m} or {m, v}.
ValueIds stepped(GraphBuilder& g, const ParameterUpdate& u, ValueId m, ValueId direction, ValueId v,
                 const OptimizerConfig& c) {
  ValueId step = mul(g, direction, u.lr);
  ValueIds next = {unless_skipped(g, u, u.parameter, sub(g, decayed(g, u, step, c), step)), m};
  if (v != kNoValue) next.push_back(unless_skipped(g, u, u.states[1], v));
  return next;
}

// Elements that a rank updates together: enough to fill a GPU, and little beside a model.
constexpr int64_t kMostTogether = int64_t{1} << 25;

/// Parameters of one form that are updated together.
struct Together {
  Form form;
  std::vector<size_t> members;  // indices of updates
  int64_t size = 0;             // of their stack: as many, or more, so that each rank has as many as the others
};

// How many of `count` parameters a rank works on at a time.
int64_t at_a_time(int64_t count, const Form& form, const WorkShares& shares) {
  int64_t most = std::max<int64_t>(kMostTogether / (form.rows * form.columns * form.blocks), 1);
  if (shares.least_parts > 0) return std::min(ceil_div(count, shares.least_parts), most);
  int64_t of_rank = ceil_div(count, shares.ranks);
  return ceil_div(of_rank, ceil_div(of_rank, most));
}

std::vector<Together> together(GraphBuilder& g, std::span<const ParameterUpdate> updates, const WorkShares& shares) {
  std::map<Form, std::vector<size_t>> forms;
  for (size_t i = 0; i < updates.size(); ++i) forms[form_of(g, updates[i].parameter)].push_back(i);
  bool is_even = shares.ranks > 1 || shares.least_parts > 0;
  std::vector<Together> all;
  for (const auto& [form, members] : forms) {
    auto count = int64_t(members.size()), size = shares.ranks * at_a_time(count, form, shares);
    for (int64_t first = 0; first < count; first += size) {
      int64_t end = std::min(first + size, count);
      all.push_back({form, {members.begin() + first, members.begin() + end}, is_even ? size : end - first});
    }
  }
  return all;
}

std::vector<ValueIds> update_all(GraphBuilder& g, std::span<const ParameterUpdate> updates, const WorkShares& shares,
                                 const OptimizerConfig& c) {
  ValueIds next_m, momenta;
  for (const ParameterUpdate& u : updates) {
    ValueId grad = mul(g, u.grad, u.scale), m = mix(g, grad, u.states[0], c.muon_momentum);
    next_m.push_back(unless_skipped(g, u, u.states[0], m));  // beside m, so that one kernel makes both
    momenta.push_back(c.nesterov ? mix(g, grad, m, c.muon_momentum) : m);
  }
  std::vector<ValueIds> updated(updates.size());
  for (const auto& [form, members, size] : together(g, updates, shares)) {
    ValueIds of_members, v;
    for (size_t i : members) {
      of_members.push_back(momenta[i]);
      if (updates[i].states.size() > 1) v.push_back(updates[i].states[1]);
    }
    Directions made = directions(g, stacked(g, of_members, size), v, members.size(), form, shares, c);
    for (size_t j = 0; j < members.size(); ++j) {
      size_t i = members[j];
      updated[i] = stepped(g, updates[i], next_m[i], made.steps[j], v.empty() ? kNoValue : made.v[j], c);
    }
  }
  return updated;
}

}  // namespace

constexpr std::string_view kOptions[] = {
    "muon_momentum", "nesterov", "muon_scale", "adamw_lr_ratio", "cautious_decay", "beta1", "beta2", "eps",
};

constinit const OptimizerRule muon_rule = {.name = "muon",
                                           .states = kMuonStates,
                                           .update_all = update_all,
                                           .other_rule = adamw_but_for_matrices,
                                           .options = kOptions};
constinit const OptimizerRule normuon_rule = {.name = "normuon",
                                              .states = kNormuonStates,
                                              .update_all = update_all,
                                              .other_rule = adamw_but_for_matrices,
                                              .options = kOptions};

}  // namespace tokamak
