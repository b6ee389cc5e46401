#include "passes/trim_sums.h"

#include "config/mesh_config.h"
#include "graph/rewriter.h"
#include "ops/first_rows.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "passes/seed_cuts.h"

#include <map>
#include <set>

namespace tokamak {
namespace {

class SumTrimmer {
 public:
  explicit SumTrimmer(const Graph& graph) : graph_(graph) {
    for (const Argument& argument : graph.arguments()) {
      if (argument.spec.role != Role::kGradientSum || argument.spec.of.empty()) continue;
      AddedRows added = added_rows(graph, argument);
      if (added.rows == 0) continue;
      added_[argument.value] = added;
      ValueType type = graph.type(argument.value);
      type.shape[0] -= added.rows;
      ArgumentForm& form = trimmed_forms_[argument.value] = with_type(argument, type);
      form.spec.padding = {};
    }
  }

  bool finds_any() const { return !added_.empty(); }

  Graph run() {
    Rewriter rewriter(graph_, trimmed_forms_);
    for (const auto& [sum, added] : added_) states_[sum] = rewriter.map(sum);
    for (const Node& node : graph_.nodes()) visit(rewriter, node);
    GraphBuilder& g = rewriter.in_phase(Phase::kUpdate);
    std::vector<Update> updates;
    for (const Update& update : graph_.updates()) {
      if (auto sum = states_.find(update.value); sum != states_.end() && !states_.contains(update.target))
        updates.push_back({rewriter.map(update.target), with_rows(g, sum->second, added_.at(update.value))});
      else if (states_.contains(update.target))
        updates.push_back({states_.at(update.target), trimmed(rewriter, g, update)});
      else
        updates.push_back({rewriter.map(update.target), rewriter.map(update.value)});
    }
    std::vector<Result> results;
    for (const Result& result : graph_.results()) results.push_back({result.name, rewriter.map(result.value)});
    Graph to = std::move(g.graph());
    for (Result& result : results) to.add_result(std::move(result.name), result.value);
    for (const Update& update : updates) to.add_update(update.target, update.value);
    return to;
  }

 private:
  // A gradient that rows were added to is added as it was before. All other readers share one sum with rows, so that
  // what one of them wants counts for all.
  void visit(Rewriter& rewriter, const Node& node) {
    for (ValueId input : node.inputs) {
      auto state = states_.find(input);
      if (state == states_.end()) continue;
      GraphBuilder& g = rewriter.in_place_of(node);
      if (ValueId gradient = gradient_added(node, input); gradient != kNoValue) {
        ValueId sum = add(g, state->second, rewriter.map(gradient));
        trimmed_[node.outputs[0]] = sum;
        return rewriter.replace(node.outputs[0], with_rows(g, sum, added_.at(input)));
      }
      if (padded_.insert(input).second) rewriter.replace(input, with_rows(g, state->second, added_.at(input)));
    }
    rewriter.copy(node);
  }

  // Without its rows, where the node adds the gradient to the sum; else kNoValue.
  ValueId gradient_added(const Node& node, ValueId sum) const {
    if (node.op != &op::add) return kNoValue;
    int producer = graph_.producer(node.inputs[node.inputs[0] == sum ? 1 : 0]);
    if (producer < 0) return kNoValue;
    const Node& made = graph_.nodes()[size_t(producer)];
    bool has_rows = made.op == &op::pad && graph_.shape(made.inputs[0]) == trimmed_forms_.at(sum).type.shape;
    return has_rows ? made.inputs[0] : kNoValue;
  }

  static ValueId with_rows(GraphBuilder& g, ValueId value, const AddedRows& added) {
    return pad(g, value, 0, 0, added.rows / added.parts, added.parts);
  }

  ValueId trimmed(const Rewriter& rewriter, GraphBuilder& g, const Update& update) const {
    if (auto known = trimmed_.find(update.value); known != trimmed_.end()) return known->second;
    const Shape& shape = trimmed_forms_.at(update.target).type.shape;
    int producer = graph_.producer(update.value);
    if (producer >= 0 && graph_.nodes()[size_t(producer)].op == &op::constant)
      return constant(g, graph_.nodes()[size_t(producer)].attrs.get_double("value"), shape);
    return first_rows(g, rewriter.map(update.value), shape[0], added_.at(update.target).parts);
  }

  const Graph& graph_;
  std::map<ValueId, AddedRows> added_;             // by sum
  std::map<ValueId, ArgumentForm> trimmed_forms_;  // without them
  std::set<ValueId> padded_;                       // sums that have their rows again
  std::map<ValueId, ValueId> states_;              // in the new graph
  std::map<ValueId, ValueId> trimmed_;             // by old value: the same without rows
};

}  // namespace

Graph with_sums_trimmed(const Graph& graph, const PassContext& context) {
  if (context.slots > 1 || !adds_gradients_once(context.zero)) return graph;
  SumTrimmer trimmer(graph);
  return trimmer.finds_any() ? trimmer.run() : graph;
}

}  // namespace tokamak
