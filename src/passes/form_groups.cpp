#include "passes/form_groups.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "passes/group_units.h"

#include <algorithm>
#include <unordered_map>

namespace tokamak {
namespace {

// Blocks of a model repeat their nodes: what became of one is known of those like it.
class Former {
 public:
  explicit Former(const Graph& graph) : graph_(graph), read_(find_escaping(graph)), rewriter_(graph) {
    for (const Node& node : graph.nodes())
      for (ValueId input : node.inputs) read_[size_t(input)] = true;
  }

  /// Whether any node became a group.
  bool run() {
    bool changed = false;
    for (const Node& node : graph_.nodes()) {
      const Formed& formed = form(node);
      if (formed.body)
        append(node, formed);
      else
        rewriter_.copy(node);
      changed |= bool(formed.body);
    }
    return changed;
  }
  Graph finish() { return rewriter_.finish(); }

 private:
  struct Formed {
    const Node* first = nullptr;                  // of the nodes that it is known of
    const OpDef* kind = nullptr;                  // of the group
    ValueIds inputs = {}, outputs = {};           // the group's, as places among those of the node
    std::shared_ptr<const Graph> body = nullptr;  // none: the node is not a group
  };

  const Formed& form(const Node& node) {
    std::vector<Formed>& known = formed_[node.op];
    for (const Formed& formed : known)
      if (is_like(*formed.first, node)) return formed;
    return known.emplace_back(make(node));
  }

  // Whether both do the same, of operands of the same types, of which the same ones are equal.
  bool is_like(const Node& a, const Node& b) const {
    if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size() || a.attrs != b.attrs) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i)
      if (graph_.type(a.inputs[i]) != graph_.type(b.inputs[i]) || place(a.inputs, i) != place(b.inputs, i))
        return false;
    for (size_t i = 0; i < a.outputs.size(); ++i)
      if (graph_.type(a.outputs[i]) != graph_.type(b.outputs[i]) ||
          read_[size_t(a.outputs[i])] != read_[size_t(b.outputs[i])])
        return false;
    return true;
  }
  static ValueId place_of(const ValueIds& values, ValueId value) {
    return ValueId(std::find(values.begin(), values.end(), value) - values.begin());
  }
  static ValueId place(const ValueIds& values, size_t i) { return place_of(values, values[i]); }

  Formed make(const Node& node) const {
    std::vector<bool> wanted;
    for (ValueId output : node.outputs) wanted.push_back(read_[size_t(output)]);
    Formed formed{&node};
    std::optional<GroupBody> group = group_of_node(graph_, node, wanted);
    if (!group) return formed;
    ValueTypes types;
    for (ValueId input : group->inputs()) {
      types.push_back(graph_.type(input));
      formed.inputs.push_back(place_of(node.inputs, input));
    }
    for (const GroupResult& result : group->results) formed.outputs.push_back(place_of(node.outputs, result.outer));
    formed.kind = group->kind;
    formed.body = make_body(*group, types);
    return formed;
  }

  void append(const Node& node, const Formed& formed) {
    ValueIds inputs;
    for (ValueId place : formed.inputs) inputs.push_back(rewriter_.map(node.inputs[size_t(place)]));
    ValueIds outputs = rewriter_.in_place_of(node).add(*formed.kind, std::move(inputs), {}, formed.body);
    for (size_t i = 0; i < outputs.size(); ++i) rewriter_.replace(node.outputs[size_t(formed.outputs[i])], outputs[i]);
  }

  const Graph& graph_;
  std::vector<bool> read_;  // by value
  Rewriter rewriter_;
  std::unordered_map<const OpDef*, std::vector<Formed>> formed_;
};

}  // namespace

bool form_groups(Graph& graph, const PassContext&) {
  Former former(graph);
  if (!former.run()) return false;
  graph = former.finish();
  return true;
}

}  // namespace tokamak
