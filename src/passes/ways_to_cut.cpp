#include "passes/ways_to_cut.h"

#include <algorithm>

namespace tokamak {
namespace {

using Kind = Placement::Kind;

Placement place_cut(const ShardingRule& rule, const OperandFactors& operand, const FactorCut& cut) {
  if (cut.factor < 0) return {};
  FactorPlace place = place_of(rule, operand, cut.factor);
  return place.dim < 0 ? Placement{} : Placement::cut(place.dim, place.blocks * cut.blocks, cut.mirrored);
}

}  // namespace

Placement input_of(const ShardingRule& rule, const Way& way, size_t input) {
  if (std::find(way.linear.begin(), way.linear.end(), int(input)) != way.linear.end()) return {.kind = Kind::kSum};
  return place_cut(rule, rule.inputs[input], way.cut);
}

Placement output_of(const ShardingRule& rule, const Way& way, size_t output) {
  if (!way.linear.empty()) return {.kind = Kind::kSum};
  Placement placement = place_cut(rule, rule.outputs[output], way.cut);
  if (placement.is_cut() || way.cut.factor < 0) return placement;
  switch (rule.factors[size_t(way.cut.factor)].rest) {
    case Factor::Rest::kSame: return {};
    case Factor::Rest::kSum: return {.kind = Kind::kSum};
    case Factor::Rest::kMax: return {.kind = Kind::kMax};
  }
  return {};
}

FactorCut cut_of(const ShardingRule& rule, const OperandFactors& operand, const Placement& placement, int64_t size) {
  if (!placement.is_cut()) return {};
  FactorCut cut = find_factor(rule, operand[size_t(placement.dim)], placement.blocks, size);
  cut.mirrored = placement.mirrored;
  bool pairs = !cut.mirrored || cut.blocks % 2 == 0;  // which of a pair a block is, is said within the factor
  return cut.factor >= 0 && pairs && !rule.factors[size_t(cut.factor)].whole ? cut : FactorCut{};
}

bool can_cut_too(const ShardingRule& rule, const FactorCut& cut, size_t axis, const std::vector<Way>& before,
                 const Mesh& mesh) {
  const Factor& factor = rule.factors[size_t(cut.factor)];
  int64_t size = mesh.axes[axis].size;
  bool placeable = factor.mirrored ? cut.mirrored && cut.blocks == 2 : cut.blocks == 1;
  if (factor.whole || factor.size % (cut.blocks * size) != 0 || (factor.placed && !placeable)) return false;
  auto as_cut = [&](const FactorCut& f, size_t a) {
    return Cut{mesh.axes[a].name, mesh.axes[a].size, f.factor, f.blocks, f.mirrored};
  };
  for (size_t a = 0; a < before.size(); ++a) {
    const FactorCut& other = before[a].cut;
    if (other.factor != cut.factor) continue;
    Cut one = as_cut(cut, axis), two = as_cut(other, a);
    if (factor.placed || (!lies_within(one, two) && !lies_within(two, one))) return false;
  }
  return true;
}

}  // namespace tokamak
