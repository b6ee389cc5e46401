// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): a matrix moves along its
// momentum made orthogonal, and its blocks (q, k and v) each by itself. Blocks of one form are multiplied together.
// Tables and vectors are AdamW's.
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
#include <map>
#include <tuple>

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

/// One of the blocks that stand side by side in a parameter.
struct Block {
  ValueId momentum = kNoValue, v = kNoValue;  // v of normuon
  double in, out;                             // its sizes in the model
  int64_t inputs_dim;                         // 0, or 1 where it is stored (out, in)
  bool sums_columns;                          // orthogonalized
};

Block block_of(const Layout& layout) {
  int64_t inputs_dim = layout.transposed ? 1 : 0;
  auto in = double(layout.global[size_t(inputs_dim)]), out = double(layout.global[size_t(1 - inputs_dim)]);
  return {.in = in,
          .out = out / double(layout.blocks),
          .inputs_dim = inputs_dim,
          .sums_columns = layout.role == Role::kMatrix || apart_dim(layout) == 1};
}

// The blocks of a parameter of which this is the momentum.
void append_blocks(GraphBuilder& g, ValueId momentum, ValueId v, const Layout& layout, std::vector<Block>& blocks) {
  Block block = block_of(layout);
  int64_t columns = g.shape(momentum)[1] / layout.blocks;
  for (int64_t b = 0; b < layout.blocks; ++b) {
    bool whole = layout.blocks == 1;
    block.momentum = whole ? momentum : slice(g, momentum, 1, b * columns, columns);
    if (v != kNoValue) block.v = whole ? v : slice(g, v, 0, b * columns, columns);
    blocks.push_back(block);
  }
}

// Elements of matrices that are made orthogonal in one go: enough to fill a GPU, and little beside a model.
constexpr int64_t kMostTogether = int64_t{1} << 25;

// Of matrices of one form, each orthogonal.
std::vector<ValueId> orthogonal_together(GraphBuilder& g, std::span<const ValueId> matrices, bool sums_columns) {
  auto count = int64_t(matrices.size());
  Shape one = g.shape(matrices[0]);
  one.insert(one.begin(), 1);
  std::vector<ValueId> stack, apart;
  for (ValueId matrix : matrices) stack.push_back(reshape(g, matrix, one));
  ValueId all = orthogonalized(g, count == 1 ? stack[0] : concat(g, stack, 0), sums_columns);
  for (int64_t i = 0; i < count; ++i)
    apart.push_back(reshape(g, count == 1 ? all : slice(g, all, 0, i, 1), g.shape(matrices[0])));
  return apart;
}

// In the order of `blocks`, each block's momentum made orthogonal; those of one form together, in about equal parts.
std::vector<ValueId> orthogonal_momenta(GraphBuilder& g, const std::vector<Block>& blocks) {
  std::map<std::tuple<int64_t, int64_t, bool>, std::vector<size_t>> forms;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Shape& shape = g.shape(blocks[i].momentum);
    forms[{shape[0], shape[1], blocks[i].sums_columns}].push_back(i);
  }
  std::vector<ValueId> orthogonal(blocks.size());
  for (const auto& [form, members] : forms) {
    auto [rows, columns, sums_columns] = form;
    auto count = int64_t(members.size()), most = std::max<int64_t>(kMostTogether / (rows * columns), 1);
    int64_t parts = (count + most - 1) / most;
    for (int64_t part = 0; part < parts; ++part) {
      std::span<const size_t> together(members.begin() + part * count / parts,
                                       members.begin() + (part + 1) * count / parts);
      std::vector<ValueId> momenta;
      for (size_t i : together) momenta.push_back(blocks[i].momentum);
      std::vector<ValueId> made = orthogonal_together(g, momenta, sums_columns);
      for (size_t j = 0; j < together.size(); ++j) orthogonal[together[j]] = made[j];
    }
  }
  return orthogonal;
}

ValueId norm_of(GraphBuilder& g, ValueId matrix) { return sqrt(g, sum_squares(g, {matrix})); }

// By what its outputs' mean squares `v` have become, and of the size that `orthogonal` has with its scale.
ValueId normalized(GraphBuilder& g, ValueId orthogonal, ValueId v, const Block& block, const OptimizerConfig& c) {
  constexpr double kEps = 1e-8;
  if (block.inputs_dim == 1) v = reshape(g, v, {g.shape(v)[0], 1});
  ValueId even = div(g, orthogonal, add(g, sqrt(g, v), constant(g, kEps)));
  ValueId size = matches_adamw(c) ? constant(g, 0.2 * std::sqrt(block.in * block.out))
                                  : mul(g, norm_of(g, orthogonal), constant(g, scale_of(block.in, block.out, c)));
  return mul(g, even, div(g, size, add(g, norm_of(g, even), constant(g, kEps))));
}

// {direction} of one block; of normuon {direction, the next v}.
std::vector<ValueId> direction(GraphBuilder& g, ValueId orthogonal, const Block& block, const OptimizerConfig& c) {
  if (block.v == kNoValue) return {mul(g, orthogonal, constant(g, scale_of(block.in, block.out, c)))};
  ValueId sum = reduce_sum(g, mul(g, orthogonal, orthogonal), {block.inputs_dim}, false);
  ValueId next = mix(g, mul(g, sum, constant(g, 1 / block.in)), block.v, c.beta2);
  return {normalized(g, orthogonal, next, block, c), next};
}

// The same of a parameter, whose blocks stand side by side again.
std::vector<ValueId> direction_of_parameter(GraphBuilder& g, std::span<const ValueId> orthogonal,
                                            std::span<const Block> blocks, const OptimizerConfig& c) {
  if (blocks.size() == 1) return direction(g, orthogonal[0], blocks[0], c);
  std::vector<ValueId> directions, next;
  for (size_t b = 0; b < blocks.size(); ++b) {
    std::vector<ValueId> of_block = direction(g, orthogonal[b], blocks[b], c);
    directions.push_back(of_block[0]);
    if (of_block.size() > 1) next.push_back(of_block[1]);
  }
  if (next.empty()) return {concat(g, directions, 1)};
  return {concat(g, directions, 1), concat(g, next, 0)};
}

// The new parameter and its states {m} or {m, v}.
std::vector<ValueId> stepped(GraphBuilder& g, const ParameterUpdate& u, ValueId m, std::vector<ValueId> next,
                             const OptimizerConfig& c) {
  ValueId step = mul(g, next[0], u.lr);
  next[0] = unless_skipped(g, u, u.parameter, sub(g, decayed(g, u, step, c), step));
  if (next.size() > 1) next[1] = unless_skipped(g, u, u.states[1], next[1]);
  next.insert(next.begin() + 1, m);
  return next;
}

std::vector<std::vector<ValueId>> update_all(GraphBuilder& g, std::span<const ParameterUpdate> updates,
                                             const OptimizerConfig& c) {
  std::vector<ValueId> next_m;
  std::vector<Block> blocks;
  std::vector<size_t> first;  // block of each parameter, and the end
  for (const ParameterUpdate& u : updates) {
    ValueId grad = mul(g, u.grad, u.scale), m = mix(g, grad, u.states[0], c.muon_momentum);
    next_m.push_back(unless_skipped(g, u, u.states[0], m));  // beside m, so that one kernel makes both
    first.push_back(blocks.size());
    append_blocks(g, c.nesterov ? mix(g, grad, m, c.muon_momentum) : m, u.states.size() > 1 ? u.states[1] : kNoValue,
                  Layout(g.graph().argument_of(u.parameter)->layout), blocks);
  }
  first.push_back(blocks.size());
  std::vector<ValueId> orthogonal = orthogonal_momenta(g, blocks);
  std::vector<std::vector<ValueId>> updated;
  for (size_t i = 0; i < updates.size(); ++i) {
    size_t begin = first[i], count = first[i + 1] - begin;
    std::vector<ValueId> next = direction_of_parameter(g, std::span(orthogonal).subspan(begin, count),
                                                       std::span(blocks).subspan(begin, count), c);
    updated.push_back(stepped(g, updates[i], next_m[i], std::move(next), c));
  }
  return updated;
}

}  // namespace

constinit const OptimizerRule muon_rule = {.name = "muon",
                                           .states = kMuonStates,
                                           .update_all = update_all,
                                           .other_rule = adamw_but_for_matrices,
                                           .whole = true};
constinit const OptimizerRule normuon_rule = {.name = "normuon",
                                              .states = kNormuonStates,
                                              .update_all = update_all,
                                              .other_rule = adamw_but_for_matrices,
                                              .whole = true};

}  // namespace tokamak
