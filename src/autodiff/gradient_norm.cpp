#include "autodiff/gradient_norm.h"

#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <numeric>
#include <tuple>

namespace tokamak {
namespace {

using Names = std::vector<std::string>;
using Alike = std::tuple<Role, size_t, Shape>;

bool is_cut_by_columns(const ArgumentSpec& spec) {
  return (spec.role == Role::kColumn || spec.role == Role::kRow) && apart_dim(spec) == 1;
}

// Gradients whose squares one node adds must be cut between pieces or not at all. Columns of a matrix may be cut, so
// each is by itself.
std::map<Alike, Names> group_parameters(const Graph& model, const NormPieces& pieces) {
  std::map<Alike, Names> groups;
  size_t number = 0;
  for (const Argument& a : model.arguments()) {
    if (a.kind != Argument::Kind::kParameter) continue;
    bool alone = pieces.others > 1 && is_cut_by_columns(a.spec);
    groups[{a.spec.role, alone ? number : 0, model.shape(a.value)}].push_back(a.name);
    ++number;
  }
  return groups;
}

// (names, pieces): zeros for those that are not here.
ValueId squares_of(GraphBuilder& g, const Names& names, const std::map<std::string, ValueId>& grads, int64_t pieces) {
  ValueIds here, rows;
  for (const std::string& name : names)
    if (auto at = grads.find(name); at != grads.end()) here.push_back(at->second);
  auto all = int64_t(names.size());
  if (here.empty()) return constant(g, 0, {all, pieces});
  ValueId squares = sum_squares_of_pieces(g, here, pieces);
  if (here.size() == names.size()) return squares;
  int64_t row = 0;
  for (const std::string& name : names)
    rows.push_back(grads.count(name) ? slice(g, squares, 0, row++, 1) : constant(g, 0, {1, pieces}));
  return concat(g, rows, 0);
}

}  // namespace

int64_t NormPieces::of(int64_t dim) const {
  int64_t first = dim % others == 0 ? others : 1;
  return first * std::gcd(dim / first, most);
}

ValueId sum_squares_in_order(GraphBuilder& g, const Graph& model, const std::map<std::string, ValueId>& grads,
                             const NormPieces& pieces, const MeshAxis& stages) {
  ValueId sum = kNoValue;
  for (const auto& [alike, names] : group_parameters(model, pieces)) {
    ValueId squares = squares_of(g, names, grads, pieces.of(std::get<Shape>(alike)[0]));
    // Exact: what one stage has is zero on all others.
    if (stages.size > 1) squares = all_reduce(g, squares, stages, Reduction::kSum);
    ValueId of_these = reduce_sum(g, squares, {0, 1}, false);
    sum = sum == kNoValue ? of_these : add(g, sum, of_these);
  }
  return sum;
}

}  // namespace tokamak
