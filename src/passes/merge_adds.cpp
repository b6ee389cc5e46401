#include "passes/merge_adds.h"

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/movement.h"
#include "ops/multi_add.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <map>

namespace tokamak {
namespace {

// What a sum is of, in the order in which it is added.
using Terms = ValueIds;

class AddMerger {
 public:
  explicit AddMerger(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), terms_(size_t(graph.num_values())),
        kept_(size_t(graph.num_values()), false) {
    for (const Result& result : graph.results()) kept_[size_t(result.value)] = true;
    for (const Update& update : graph.updates()) kept_[size_t(update.value)] = true;
    for (const Node& node : graph.nodes())
      if (node.op == &op::add) terms_[size_t(node.outputs[0])] = terms_of(node);
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      if (is_sum(graph.nodes()[n])) families_[family_of(graph.nodes()[n])].push_back(int(n));
    std::erase_if(families_, [](const auto& family) { return family.second.size() < 2; });
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      if (int part = added_part(graph.nodes()[n]); part >= 0) parts_[part] = int(n);
  }

  bool any() const { return !families_.empty() || !parts_.empty(); }

  Graph rewrite() {
    Rewriter rewriter(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      auto family = is_sum(node) ? families_.find(family_of(node)) : families_.end();
      if (family != families_.end()) {
        if (int(n) == place_of(*family)) emit(rewriter, family->second);
      } else if (added_part(node) < 0) {
        rewriter.copy(node);  // of the parts of sums too, which then have no reader
        if (auto part = parts_.find(int(n)); part != parts_.end()) add_at(rewriter, node, part->second);
      }
    }
    return rewriter.finish();
  }

 private:
  // Sums that become one kernel have this in common: whether they are of states alone, how many terms each has, and the
  // one collective that reads them (-1: none does).
  struct Family {
    bool of_states;
    size_t terms;
    int collective;
    auto operator<=>(const Family&) const = default;
  };

  bool is_state(ValueId value) const {
    const Argument* argument = graph_.argument_of(value);
    return argument && argument->kind == Argument::Kind::kState;
  }

  bool is_only_added(ValueId value) const {
    std::span<const int> users = users_[size_t(value)];
    return users.size() == 1 && !kept_[size_t(value)] && graph_.nodes()[size_t(users[0])].op == &op::add;
  }

  // The states that this addition adds up, through a sum before it that nothing else reads. Empty: it is no such sum.
  Terms terms_of(const Node& node) const {
    ValueId x = node.inputs[0], y = node.inputs[1];
    if (graph_.dtype(x) != DType::kF32 || graph_.type(x) != graph_.type(y)) return {};
    if (!is_state(y)) std::swap(x, y);
    if (!is_state(y)) return {};
    if (is_state(x)) return {x, y};
    if (const Terms& part = terms_[size_t(x)]; !part.empty() && is_only_added(x)) {
      Terms terms = part;
      terms.push_back(y);
      return terms;
    }
    return graph_.shape(y).size() == 1 ? Terms{y, x} : Terms{};
  }

  bool is_of_states(const Terms& terms) const {
    return std::all_of(terms.begin(), terms.end(), [&](ValueId v) { return is_state(v); });
  }

  // Whether the node ends a sum that may be merged: what is added to a state is only kept, and no reader could be fused
  // with it.
  bool is_sum(const Node& node) const {
    if (node.op != &op::add) return false;
    ValueId sum = node.outputs[0];
    const Terms& terms = terms_[size_t(sum)];
    std::span<const int> users = users_[size_t(sum)];
    if (terms.empty() || (!is_of_states(terms) && !users.empty())) return false;
    return std::all_of(users.begin(), users.end(),
                       [&](int user) { return graph_.nodes()[size_t(user)].op->fusion == Fusion::kOpaque; });
  }

  // The slice that the node adds to a state, when that is all that becomes of both; -1: it is no such sum.
  int added_part(const Node& node) const {
    if (node.op != &op::add || !users_[size_t(node.outputs[0])].empty()) return -1;
    ValueId part = node.inputs[0], state = node.inputs[1];
    if (!is_state(state)) std::swap(part, state);
    int maker = graph_.producer(part);
    if (!is_state(state) || maker < 0 || graph_.nodes()[size_t(maker)].op != &op::slice) return -1;
    bool alone = users_[size_t(part)].size() == 1 && users_[size_t(state)].size() == 1 && !kept_[size_t(part)];
    return alone && kept_[size_t(node.outputs[0])] && graph_.shape(state).size() > 1 ? maker : -1;
  }

  // As a part of its slice's phase.
  void add_at(Rewriter& rewriter, const Node& slice, int sum) {
    Node add = graph_.nodes()[size_t(sum)];
    add.phase = slice.phase;
    rewriter.copy(add);
  }

  Family family_of(const Node& node) const {
    const Terms& terms = terms_[size_t(node.outputs[0])];
    std::span<const int> users = users_[size_t(node.outputs[0])];
    bool is_sent = users.size() == 1 && graph_.nodes()[size_t(users[0])].op->effects;
    return {is_of_states(terms), terms.size(), is_sent ? users[0] : -1};
  }

  // Where the kernel of a family stands: of states at its first sum, of others at its last, when all terms are made.
  static int place_of(const std::pair<const Family, std::vector<int>>& family) {
    return family.first.of_states ? family.second.front() : family.second.back();
  }

  void emit(Rewriter& rewriter, const std::vector<int>& nodes) {
    ValueIds sums;
    std::vector<ValueIds> terms;
    for (int n : nodes) {
      sums.push_back(graph_.nodes()[size_t(n)].outputs[0]);
      const Terms& of = terms_[size_t(sums.back())];
      terms.resize(of.size());
      for (size_t term = 0; term < of.size(); ++term) terms[term].push_back(rewriter.map(of[term]));
    }
    rewriter.replace(sums, multi_add(rewriter.in_place_of(graph_.nodes()[size_t(nodes[0])]), terms));
  }

  const Graph& graph_;
  Users users_;
  std::vector<Terms> terms_;  // by value
  std::vector<bool> kept_;    // by value: as a result or an update
  std::map<Family, std::vector<int>> families_;
  std::map<int, int> parts_;  // sums by the slices that they add to states
};

}  // namespace

bool merge_adds(Graph& graph, const PassContext&) {
  AddMerger merger(graph);
  if (!merger.any()) return false;
  graph = merger.rewrite();
  return true;
}

}  // namespace tokamak
