// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): a matrix moves along its
// momentum made orthogonal, and its blocks (q, k and v) each by itself. Tables and vectors are AdamW's.
//   m = mu m + (1 - mu) g; o = orthogonal(mu m + (1 - mu) g, or m without Nesterov's step)
//   param = (1 - lr decay) param - lr scale o
// The scale makes updates as large as AdamW's (Liu et al., "Muon is scalable for LLM training", 2025), or is the first
// one. normuon divides the columns of o, what each output has, by the root of their mean squares over steps, and then
// gives the matrix its size (Li et al., "NorMuon: Making Muon more efficient and scalable", 2025).
#include "autodiff/newton_schulz.h"
#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

ValueType one_of_each_output(const ValueType& parameter, const Layout& layout) {
  return {parameter.dtype, {parameter.shape[layout.transposed ? 0 : 1]}};
}

constexpr OptimizerState kMuonStates[] = {{"muon.m"}};
constexpr OptimizerState kNormuonStates[] = {{"muon.m"}, {"muon.v", one_of_each_output}};

const OptimizerRule* adamw_but_for_matrices(const Argument& parameter) {
  Role role = parameter.layout.role;
  bool is_of_block = role == Role::kMatrix || role == Role::kColumn || role == Role::kRow;
  return is_of_block && parameter.layout.global.size() == 2 ? nullptr : &adamw_rule;
}

bool matches_adamw(const OptimizerConfig& c) { return c.muon_scale == "rms"; }

double scale_of(double in, double out, const OptimizerConfig& c) {
  return matches_adamw(c) ? 0.2 * std::sqrt(std::max(in, out)) : std::sqrt(std::max(1.0, out / in));
}

/// What a matrix's direction needs beside its momentum.
struct Matrix {
  double in, out;      // its sizes in the model
  int64_t inputs_dim;  // 0, or 1 where it is stored (out, in)
  bool sums_columns;   // NewtonSchulz
};

// Of one of the blocks that stand side by side.
Matrix matrix_of(const Layout& layout) {
  int64_t inputs_dim = layout.transposed ? 1 : 0;
  auto in = double(layout.global[size_t(inputs_dim)]), out = double(layout.global[size_t(1 - inputs_dim)]);
  return {in, out / double(layout.blocks), inputs_dim, layout.role == Role::kMatrix || apart_dim(layout) == 1};
}

ValueId norm_of(GraphBuilder& g, ValueId matrix) { return sqrt(g, sum_squares(g, {matrix})); }

// By what its outputs' mean squares `v` have become, and of the size that `orthogonal` has with its scale.
ValueId normalized(GraphBuilder& g, ValueId orthogonal, ValueId v, const Matrix& matrix, const OptimizerConfig& c) {
  constexpr double kEps = 1e-8;
  if (matrix.inputs_dim == 1) v = reshape(g, v, {g.shape(v)[0], 1});
  ValueId even = div(g, orthogonal, add(g, sqrt(g, v), constant(g, kEps)));
  ValueId size = matches_adamw(c) ? constant(g, 0.2 * std::sqrt(matrix.in * matrix.out))
                                  : mul(g, norm_of(g, orthogonal), constant(g, scale_of(matrix.in, matrix.out, c)));
  return mul(g, even, div(g, size, add(g, norm_of(g, even), constant(g, kEps))));
}

// {direction} of one matrix; with the state v, {direction, the next v}.
std::vector<ValueId> direction(GraphBuilder& g, ValueId momentum, ValueId v, const Matrix& matrix,
                               const OptimizerConfig& c) {
  ValueId orthogonal = orthogonalized(g, momentum, matrix.sums_columns);
  if (v == kNoValue) return {mul(g, orthogonal, constant(g, scale_of(matrix.in, matrix.out, c)))};
  ValueId sum = reduce_sum(g, mul(g, orthogonal, orthogonal), {matrix.inputs_dim}, false);
  ValueId next = mix(g, mul(g, sum, constant(g, 1 / matrix.in)), v, c.beta2);
  return {normalized(g, orthogonal, next, matrix, c), next};
}

// Of all blocks, side by side again.
std::vector<ValueId> direction_of_blocks(GraphBuilder& g, ValueId momentum, ValueId v, const Layout& layout,
                                         const OptimizerConfig& c) {
  Matrix matrix = matrix_of(layout);
  if (layout.blocks == 1) return direction(g, momentum, v, matrix, c);
  int64_t columns = g.shape(momentum)[1] / layout.blocks;
  std::vector<ValueId> directions, next;
  for (int64_t b = 0; b < layout.blocks; ++b) {
    ValueId v_of_block = v == kNoValue ? kNoValue : slice(g, v, 0, b * columns, columns);
    std::vector<ValueId> block = direction(g, slice(g, momentum, 1, b * columns, columns), v_of_block, matrix, c);
    directions.push_back(block[0]);
    if (v != kNoValue) next.push_back(block[1]);
  }
  if (v == kNoValue) return {concat(g, directions, 1)};
  return {concat(g, directions, 1), concat(g, next, 0)};
}

std::vector<ValueId> update(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  const Layout layout = g.graph().argument_of(u.parameter)->layout;
  ValueId grad = mul(g, u.grad, u.scale), m = mix(g, grad, u.states[0], c.muon_momentum);
  ValueId momentum = c.nesterov ? mix(g, grad, m, c.muon_momentum) : m;
  ValueId v = u.states.size() > 1 ? u.states[1] : kNoValue;
  std::vector<ValueId> next = direction_of_blocks(g, momentum, v, layout, c);
  ValueId step = mul(g, next[0], u.lr);
  next[0] = sub(g, decayed(g, u, step, c), step);
  next.insert(next.begin() + 1, m);
  next[0] = unless_skipped(g, u, u.parameter, next[0]);
  for (size_t i = 0; i < u.states.size(); ++i) next[i + 1] = unless_skipped(g, u, u.states[i], next[i + 1]);
  return next;
}

}  // namespace

constinit const OptimizerRule muon_rule = {
    .name = "muon", .states = kMuonStates, .update = update, .other_rule = adamw_but_for_matrices, .whole = true};
constinit const OptimizerRule normuon_rule = {
    .name = "normuon", .states = kNormuonStates, .update = update, .other_rule = adamw_but_for_matrices, .whole = true};

}  // namespace tokamak
