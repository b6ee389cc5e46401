#include "passes/wanted_cuts.h"

#include "graph/op_def.h"
#include "ops/collective.h"
#include "ops/pointwise.h"
#include "ops/redistribute.h"
#include "passes/seed_cuts.h"
#include "passes/ways_to_cut.h"

#include <algorithm>

namespace tokamak {
namespace {

class CutFinder {
 public:
  CutFinder(const WholeGraph& whole, const Mesh& mesh, const std::map<ValueId, std::vector<Cut>>& cuts)
      : graph_(whole.graph()), rules_(whole.rules()), mesh_(mesh) {
    for (const auto& [argument, of_argument] : cuts) given_[argument] = placements_of(of_argument, mesh);
    wanted_ = given_;
    for (auto& [argument, placements] : wanted_)
      for (Placement& placement : placements)
        if (placement.is_term()) placement = {};
    for (const Update& update : graph_.updates())
      if (auto target = given_.find(update.target); target != given_.end()) wanted_[update.value] = target->second;
  }

  WantedPlacements find() {
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (node.op == &op::redistribute) continue;  // it says itself how what it reads should lie
      if (is_ordered(node.attrs))
        visit_sum(node);
      else if (node.phase == Phase::kUpdate)
        visit(node, rules_[n], [](const MeshAxis&) { return true; });
      else if (node.op == &op::add || node.op == &op::cast)  // of gradients of several uses
        visit(node, rules_[n], [](const MeshAxis& axis) { return keeps_parameters_cut(axis.name); });
    }
    return std::move(wanted_);
  }

 private:
  template <typename Along>
  void visit(const Node& node, const ShardingRule& rule, const Along& along) {
    for (size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
      if (!along(mesh_.axes[axis])) continue;
      Way way{.cut = find_cut(node, rule, axis)};
      if (way.cut.factor < 0 && is_wanted_in_terms(node, axis) && !rule.linear.empty()) way.linear = rule.linear[0];
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (Placement placement = input_of(rule, way, i); placement != Placement{})
          want(node.inputs[i], axis, placement);
    }
  }

  bool is_wanted_in_terms(const Node& node, size_t axis) const {
    auto found = wanted_.find(node.outputs[0]);
    return found != wanted_.end() && found->second[axis].is_term();
  }

  // A term of a sum over ranks is wanted where the sum is, along axes that divide the work. So a term that is added at
  // once and one that is kept for a later sum are computed alike.
  void visit_sum(const Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto sum = wanted_.find(node.outputs[i]);
      if (sum == wanted_.end()) continue;
      for (size_t axis = 0; axis < mesh_.axes.size(); ++axis)
        if (keeps_parameters_cut(mesh_.axes[axis].name) && sum->second[axis].is_cut())
          want(node.inputs[i], axis, sum->second[axis]);
    }
  }

  // The factor along which an output is wanted, or an argument is cut.
  FactorCut find_cut(const Node& node, const ShardingRule& rule, size_t axis) const {
    auto known = [&](ValueId value, const OperandFactors& operand) -> FactorCut {
      auto found = wanted_.find(value);
      return found == wanted_.end() ? FactorCut{} : cut_of(rule, operand, found->second[axis], mesh_.axes[axis].size);
    };
    for (size_t o = 0; o < node.outputs.size(); ++o)
      if (FactorCut cut = known(node.outputs[o], rule.outputs[o]); cut.factor >= 0) return cut;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (FactorCut cut = known(node.inputs[i], rule.inputs[i]); cut.factor >= 0 && graph_.argument_of(node.inputs[i]))
        return cut;
    return {};
  }

  void want(ValueId value, size_t axis, const Placement& placement) {
    Placements& placements = wanted_.try_emplace(value, mesh_.axes.size()).first->second;
    bool is_open = graph_.producer(value) >= 0 || (placement.is_cut() && is_given_in_terms(value));
    if (is_open && !placements[axis].is_cut()) placements[axis] = placement;
  }

  bool is_given_in_terms(ValueId argument) const {
    auto found = given_.find(argument);
    return found != given_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [](const Placement& placement) { return placement.is_term(); });
  }

  const Graph& graph_;
  const std::vector<ShardingRule>& rules_;  // by node
  const Mesh& mesh_;
  WantedPlacements given_;  // of arguments
  WantedPlacements wanted_;
};

}  // namespace

WantedPlacements find_wanted(const WholeGraph& whole, const Mesh& mesh,
                             const std::map<ValueId, std::vector<Cut>>& cuts) {
  return CutFinder(whole, mesh, cuts).find();
}

}  // namespace tokamak
