#include "passes/choose_way.h"

#include "passes/seed_cuts.h"
#include "passes/shares.h"
#include "passes/whole_graph.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

// Gathering a parameter over an axis that is there to divide it costs as much as so many other values: more than there
// are of all data ranks, whose bytes count all.
constexpr double kKeepParameterCut = 1e9;

}  // namespace

std::vector<Way> WayChooser::choose(const Node& node, const ShardingRule& rule) const {
  std::vector<Way> ways;
  for (size_t axis = 0; axis < mesh_.axes.size(); ++axis) ways.push_back(choose_along(node, rule, axis, ways));
  return ways;
}

// The work may be cut along what an input is cut along already, or along what is wanted of an output or of an input
// that is a term of a sum; it may be done on terms of sums; or every rank does all of it. The cheapest of these.
Way WayChooser::choose_along(const Node& node, const ShardingRule& rule, size_t axis,
                             const std::vector<Way>& before) const {
  std::vector<Way> candidates;
  auto propose = [&](const OperandFactors& operand, const Placement& placement) {
    FactorCut cut = cut_of(rule, operand, placement, mesh_.axes[axis].size);
    if (cut.factor < 0 || !can_cut_too(rule, cut, axis, before, mesh_)) return;
    bool may = rule.factors[size_t(cut.factor)].rest == Factor::Rest::kSame || may_add_over(node, axis);
    Way way{.cut = cut};
    if (may && std::find(candidates.begin(), candidates.end(), way) == candidates.end()) candidates.push_back(way);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!whole_.is_made_where_read(node.inputs[i]) && !is_to_be_gathered(node, node.inputs[i], axis))
      for (const Placed& share : shares_.of(node.inputs[i]))
        propose(rule.inputs[i], share.at[axis].is_term() ? wanted(node.inputs[i])[axis] : share.at[axis]);
  for (size_t o = 0; o < node.outputs.size(); ++o) propose(rule.outputs[o], wanted_along(node, node.outputs[o], axis));
  for (const InputSet& linear : rule.linear) candidates.push_back({.linear = linear});
  candidates.emplace_back();
  if (candidates.size() == 1) return candidates[0];
  std::vector<double> costs;
  for (const Way& way : candidates) costs.push_back(cost_of(node, rule, way, before));
  return candidates[size_t(std::min_element(costs.begin(), costs.end()) - costs.begin())];
}

// With slots gradients are computed alike whatever ZeRO cuts, so that their bits are the same: their sums are cut
// afterwards.
Placement WayChooser::wanted_along(const Node& node, ValueId output, size_t axis) const {
  bool by_zero = ordered_ && node.phase != Phase::kUpdate && whole_.is_kept_for_sum(output) &&
                 !keeps_parameters_cut(mesh_.axes[axis].name);
  return by_zero ? Placement{} : wanted(whole_.with_rows_added(output))[axis];
}

bool WayChooser::may_add_over(const Node& node, size_t axis) const {
  return !ordered_ || node.phase != Phase::kUpdate || keeps_parameters_cut(mesh_.axes[axis].name);
}

// A parameter that ZeRO cuts does not say how the work is cut: that is for what it meets.
bool WayChooser::is_to_be_gathered(const Node& node, ValueId input, size_t axis) const {
  return node.phase != Phase::kUpdate && whole_.is_parameter(input) && !keeps_parameters_cut(mesh_.axes[axis].name);
}

// Bytes that have to be sent for the inputs to lie as they must, and the outputs as is wanted of them, along the axis
// behind those of which the ways are chosen. Where the output is a gradient that stays cut along the axis, of what
// those leave to a rank; else of all, as what is sent of activations is waited for, and of gradients hidden.
double WayChooser::cost_of(const Node& node, const ShardingRule& rule, const Way& way,
                           const std::vector<Way>& before) const {
  size_t axis = before.size();
  bool keeps_cut = keeps_parameters_cut(mesh_.axes[axis].name) && wanted_along(node, node.outputs[0], axis).is_cut();
  auto share_of = [&](auto* place, size_t operand) {
    double share = 1;
    for (size_t a = 0; a < axis && keeps_cut; ++a)
      if (place(rule, before[a], operand).is_cut()) share /= double(mesh_.axes[a].size);
    return share;
  };
  double cost = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    cost += share_of(input_of, i) * cost_to_have(node.inputs[i], axis, input_of(rule, way, i));
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    ValueId output = node.outputs[o];
    Placement given = output_of(rule, way, o), to = wanted_along(node, output, axis);
    if ((given.is_term() && (keeps_cut || !whole_.may_be_added_on(output))) || whole_.is_updated(output))
      cost += share_of(output_of, o) *
              move_cost(given, to, double(num_bytes(whole_.graph().type(output))), mesh_.axes[axis].size);
  }
  return cost;
}

double WayChooser::cost_to_have(ValueId value, size_t axis, const Placement& to) const {
  double least = std::numeric_limits<double>::infinity();
  if (whole_.is_made_where_read(value)) return to.is_term() ? least : 0;
  const MeshAxis& along = mesh_.axes[axis];
  double unwanted = whole_.is_parameter(value) && keeps_parameters_cut(along.name) ? kKeepParameterCut : 1;
  for (const Placed& share : shares_.of(value)) {
    double cost = move_cost(share.at[axis], to, double(num_bytes(whole_.graph().type(value))), along.size);
    least = std::min(least, share.at[axis].is_cut() ? cost * unwanted : cost);
  }
  return least;
}

int64_t WayChooser::ranks_to_gather(const Node& node, const ShardingRule& rule, const std::vector<Way>& ways) const {
  int64_t ranks = 1;
  for (size_t axis = 0; axis < mesh_.axes.size(); ++axis)
    if (would_gather(node, rule, ways, axis)) ranks *= mesh_.axes[axis].size;
  return ranks;
}

bool WayChooser::would_gather(const Node& node, const ShardingRule& rule, const std::vector<Way>& ways,
                              size_t axis) const {
  const Graph& graph = whole_.graph();
  int64_t largest = 0;
  for (ValueId input : node.inputs) largest = std::max(largest, num_elements(graph.shape(input)));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (num_elements(graph.shape(node.inputs[i])) < largest) continue;
    if (whole_.is_made_where_read(node.inputs[i]) || input_of(rule, ways[axis], i).is_cut()) continue;
    auto is_gathered = [&](const Placed& share) {
      return share.at[axis].is_cut() && cut_of(rule, rule.inputs[i], share.at[axis], mesh_.axes[axis].size).factor < 0;
    };
    const std::vector<Placed>& known = shares_.of(node.inputs[i]);
    if (std::all_of(known.begin(), known.end(), is_gathered)) return true;
  }
  return false;
}

const Placements& WayChooser::wanted(ValueId value) const {
  auto found = wanted_.find(value);
  return found == wanted_.end() ? whole_placement_ : found->second;
}

}  // namespace tokamak
