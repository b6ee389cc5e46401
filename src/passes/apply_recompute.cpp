#include "passes/apply_recompute.h"

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "passes/gathered_parameters.h"
#include "passes/step_mesh.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tokamak {
namespace {

class Recomputer {
 public:
  // `also`: nodes that count as marked; empty: none.
  Recomputer(const Graph& graph, bool gathers_once, const std::vector<bool>& also = {})
      : graph_(graph), rewriter_(graph), gathering_(find_gathering(graph)), marked_(graph.nodes().size(), false),
        clone_(size_t(graph.num_values()), kNoValue) {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      bool view = node.op->fusion == Fusion::kView && is_marked(node.inputs[0]);
      bool chosen = node.recompute || (!also.empty() && also[n]);
      bool again = gathering_[n] ? !gathers_once : (may_be_again(node) && (chosen || view));
      marked_[n] = node.phase == Phase::kForward && again;
    }
  }

  bool run() {
    if (std::find(marked_.begin(), marked_.end(), true) == marked_.end()) return false;
    bool changed = false;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      bool reads_again = node.phase == Phase::kBackward &&
                         std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_marked(v); });
      changed |= reads_again;
      if (!reads_again && !gathering_[n]) {
        rewriter_.copy(node);
        continue;
      }
      Node copy = node;
      for (ValueId& input : copy.inputs) input = reads_again ? again(input) : rewriter_.map(input);
      rewriter_.replace(node.outputs, gathering_[n] ? append_once(copy) : append(copy));
    }
    return changed;
  }

  Graph finish() { return rewriter_.finish(); }

 private:
  bool is_marked(ValueId value) const {
    int producer = graph_.producer(value);
    return producer >= 0 && marked_[size_t(producer)];
  }

  // The new value that the backward pass reads in place of this old one.
  ValueId again(ValueId value) {
    if (!is_marked(value)) return rewriter_.map(value);
    if (clone_[size_t(value)] != kNoValue) return clone_[size_t(value)];
    auto n = size_t(graph_.producer(value));
    const Node& node = graph_.nodes()[n];
    ValueIds inputs;
    for (ValueId input : node.inputs) inputs.push_back(again(input));
    Node copy = node;
    copy.inputs = std::move(inputs);
    copy.phase = Phase::kBackward;
    copy.recompute = !gathering_[n];
    ValueIds outputs = gathering_[n] ? append_once(copy) : append(copy);
    for (size_t i = 0; i < outputs.size(); ++i) clone_[size_t(node.outputs[i])] = outputs[i];
    return clone_[size_t(value)];
  }

  // A node with inputs of the new graph.
  ValueIds append(const Node& node) {
    return rewriter_.in_place_of(node).add(*node.op, node.inputs, node.attrs, node.body);
  }

  // The same, or what stands there already: within a phase a parameter is gathered once.
  ValueIds append_once(const Node& node) {
    std::vector<Node>& alike = gathered_[{node.phase, node.inputs}];
    for (const Node& before : alike)
      if (before.op == node.op && before.attrs == node.attrs) return before.outputs;
    Node& made = alike.emplace_back(node);
    made.outputs = append(node);
    return made.outputs;
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<bool> gathering_;  // by node
  // What gathers parameters, with inputs and outputs of the new graph, by phase and inputs.
  std::map<std::pair<Phase, ValueIds>, std::vector<Node>> gathered_;
  std::vector<bool> marked_;    // by node
  std::vector<ValueId> clone_;  // by old value: what was computed again for it
};

}  // namespace

bool may_be_again(const Node& node) {
  if (!node.op->effects) return true;
  bool is_collective = node.op == &op::all_gather || node.op == &op::reduce_scatter || node.op == &op::all_reduce;
  return is_collective && node.attrs.get_string("axis") == kTensorAxis;
}

Graph with_recomputed(const Graph& graph, const PassContext& context, const std::vector<bool>& nodes) {
  Recomputer recomputer(graph, context.gathers_once, nodes);
  return recomputer.run() ? recomputer.finish() : graph;
}

bool apply_recompute(Graph& graph, const PassContext& context) {
  Recomputer recomputer(graph, context.gathers_once);
  if (!recomputer.run()) return false;
  graph = recomputer.finish();
  return true;
}

}  // namespace tokamak
