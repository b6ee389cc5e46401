#include "plan/storage.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/pointwise.h"
#include "plan/in_place.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace tokamak {
namespace {

// Rows of several parts lie apart: a rank must have one of them.
bool is_view(const Node& node) {
  if (node.op->fusion != Fusion::kView) return false;
  TOKAMAK_CHECK(!node.attrs.find("parts"), "the first rows of several parts are no view");
  return true;
}

static_assert(kArenaAlignment % kViewAlignment == 0);

// By value, where it begins in what it shows the bytes of (find_roots).
std::vector<int64_t> find_offsets(const Graph& graph) {
  std::vector<int64_t> offsets(size_t(graph.num_values()), 0);
  for (const Node& node : graph.nodes())
    if (is_view(node))
      offsets[size_t(node.outputs[0])] =
          offsets[size_t(node.inputs[0])] + (node.op == &op::slice_view ? slice_offset(spec_of(graph, node)) : 0);
  return offsets;
}

class StorageMapper {
 public:
  StorageMapper(const Graph& graph, const StreamAssignment& assignment)
      : graph_(graph), assignment_(assignment), roots_(find_roots(graph)), last_use_(roots_.size(), -1),
        beside_(roots_.size(), -1), target_of_(roots_.size(), kNoValue) {
    map_.block_of.assign(roots_.size(), -1);
    map_.argument_of.assign(roots_.size(), kNoValue);
    for (const Argument& argument : graph.arguments()) map_.argument_of[size_t(argument.value)] = argument.value;
    find_last_uses();
    for (const Update& update : graph.updates()) {
      ValueId& target = target_of_[size_t(root(update.value))];
      bool is_whole = num_bytes(graph.type(root(update.value))) == num_bytes(graph.type(update.target));
      if (target == kNoValue && is_whole) target = update.target;
    }
  }

  StorageMap run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (!is_view(graph_.nodes()[n])) place_outputs(int(n));
    for (ValueId value = 0; value < graph_.num_values(); ++value) {
      map_.block_of[size_t(value)] = map_.block_of[size_t(root(value))];
      map_.argument_of[size_t(value)] = map_.argument_of[size_t(root(value))];
    }
    for (const Update& update : graph_.updates())
      if (map_.argument_of[size_t(update.value)] != update.target) map_.copies.push_back({update.target, update.value});
    map_.offset = find_offsets(graph_);
    return std::move(map_);
  }

 private:
  ValueId root(ValueId value) const { return roots_[size_t(value)]; }

  // By root, over all its views. What leaves the graph is read at the end.
  void find_last_uses() {
    int end = int(graph_.nodes().size());
    for (int n = 0; n < end; ++n)
      if (!is_view(graph_.nodes()[size_t(n)]))
        for (ValueId input : graph_.nodes()[size_t(n)].inputs) use(root(input), n);
    for (const Result& result : graph_.results()) last_use_[size_t(root(result.value))] = end;
    for (const Update& update : graph_.updates())
      if (root(update.value) != update.target) last_use_[size_t(root(update.value))] = end;
  }

  void use(ValueId value, int n) {
    last_use_[size_t(value)] = n;
    if (assignment_.stream[size_t(n)] != 0) beside_[size_t(value)] = std::max(beside_[size_t(value)], done(n));
  }

  // With what node the last of those that write and read the output of node n is done.
  int last_taken(ValueId output, int n) const {
    return std::max({done(n), last_use_[size_t(output)], beside_[size_t(output)]});
  }

  // A copy for a collective is made and read on the collective's stream: what comes behind it there may have its place
  // at once.
  bool is_queued(int n) const { return assignment_.stream[size_t(n)] != 0 && graph_.nodes()[size_t(n)].op == &op::pad; }

  int done(int n) const { return assignment_.done[size_t(n)]; }

  void place_outputs(int n) {
    const Node& node = graph_.nodes()[size_t(n)];
    operands_.clear();
    for (size_t i = 0; i < node.inputs.size(); ++i) operands_[root(node.inputs[i])].push_back(int(i));
    std::set<ValueId> taken;  // inputs whose storage another output of this node has
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      ValueId output = node.outputs[i];
      if (place_in_argument(n, int(i))) continue;
      if (place_in_block(n, int(i), taken)) continue;
      map_.block_of[size_t(output)] = int(map_.blocks.size());
      Block block{-1, num_bytes(graph_.type(output)), n, last_taken(output, n), {output}};
      if (is_queued(n)) block.held = std::exchange(block.last, last_use_[size_t(output)]);
      map_.blocks.push_back(std::move(block));
    }
  }

  // An update's value is written straight into its argument when nothing reads the old value any more.
  bool place_in_argument(int n, int output) {
    const Node& node = graph_.nodes()[size_t(n)];
    ValueId value = node.outputs[size_t(output)], target = target_of_[size_t(value)];
    if (target == kNoValue || last_use_[size_t(target)] > n) return false;
    if (last_use_[size_t(target)] == n && !may_overwrite_all(node, output, target)) return false;
    map_.argument_of[size_t(value)] = target;
    last_use_[size_t(target)] = int(graph_.nodes().size());  // the storage is no longer free for another update
    return true;
  }

  bool place_in_block(int n, int output, std::set<ValueId>& taken) {
    const Node& node = graph_.nodes()[size_t(n)];
    for (ValueId input : node.inputs) {
      ValueId dying = root(input);
      int block = map_.block_of[size_t(dying)];
      if (block < 0 || last_use_[size_t(dying)] != n || may_be_read_beside(dying, n)) continue;
      if (taken.contains(dying) || !may_overwrite_all(node, output, dying)) continue;
      ValueId value = node.outputs[size_t(output)];
      map_.block_of[size_t(value)] = block;
      map_.blocks[size_t(block)].values.push_back(value);
      int& last = map_.blocks[size_t(block)].last;
      last = std::max(last, last_taken(value, n));
      taken.insert(dying);
      return true;
    }
    return false;
  }

  // By a launch of another stream that is not done when node n of stream 0 runs. Waiting for it would be right, but
  // slow.
  bool may_be_read_beside(ValueId value, int n) const {
    return assignment_.stream[size_t(n)] == 0 && beside_[size_t(value)] >= n;
  }

  // Every operand of the node that shows the bytes of `dying` must allow it, not only one. What shows a part of them
  // begins elsewhere.
  bool may_overwrite_all(const Node& node, int output, ValueId dying) const {
    if (num_bytes(graph_.type(node.outputs[size_t(output)])) != num_bytes(graph_.type(dying))) return false;
    auto found = operands_.find(dying);
    return found == operands_.end() ||
           std::ranges::all_of(found->second, [&](int i) { return may_overwrite(graph_, node, output, i); });
  }

  const Graph& graph_;
  const StreamAssignment& assignment_;
  std::vector<ValueId> roots_;
  std::vector<int> last_use_;       // by root
  std::vector<int> beside_;         // by root: with what node its readers on other streams than 0 are done
  std::vector<ValueId> target_of_;  // by root: the argument that it is the update of
  std::unordered_map<ValueId, std::vector<int>> operands_;  // of the node that is looked at, by root
  StorageMap map_;
};

// See separate_updates.
class Separation {
 public:
  explicit Separation(const Graph& graph)
      : graph_(graph), roots_(find_roots(graph)), updated_(roots_.size(), false),
        first_update_(roots_.size(), kNoValue) {
    for (const Update& update : graph.updates()) {
      if (root(update.value) != update.target) updated_[size_t(update.target)] = true;
      if (ValueId& first = first_update_[size_t(update.value)]; first == kNoValue) first = update.target;
    }
  }

  bool needed() const {
    const auto& results = graph_.results();
    const auto& updates = graph_.updates();
    return std::any_of(results.begin(), results.end(), [&](const Result& r) { return is_old(r.value, kNoValue); }) ||
           std::any_of(updates.begin(), updates.end(),
                       [&](const Update& u) { return is_old(u.value, u.target) || is_shared(u); });
  }

  Graph run() {
    Rewriter rewriter(graph_);
    for (const Node& node : graph_.nodes()) rewriter.copy(node);
    GraphBuilder& g = rewriter.in_phase(Phase::kUpdate);
    std::vector<Result> results;
    std::vector<Update> updates;
    for (const Result& result : graph_.results())
      results.push_back(
          {result.name, is_old(result.value, kNoValue) ? copy(rewriter, g, result.value) : rewriter.map(result.value)});
    for (const Update& update : graph_.updates()) {
      ValueId value = is_old(update.value, update.target) ? copy(rewriter, g, update.value)
                      : is_shared(update)                 ? make_again(g, update.value)
                                                          : rewriter.map(update.value);
      updates.push_back({rewriter.map(update.target), value});
    }
    Graph separated = std::move(g.graph());
    for (Result& result : results) separated.add_result(std::move(result.name), result.value);
    for (const Update& update : updates) separated.add_update(update.target, update.value);
    return separated;
  }

 private:
  ValueId root(ValueId value) const { return roots_[size_t(value)]; }

  bool is_old(ValueId value, ValueId target) const { return root(value) != target && updated_[size_t(root(value))]; }

  // A value of several updates that costs no more to make again than to copy.
  bool is_shared(const Update& update) const {
    int producer = graph_.producer(update.value);
    return first_update_[size_t(update.value)] != update.target && producer >= 0 &&
           graph_.nodes()[size_t(producer)].inputs.empty() && graph_.nodes()[size_t(producer)].outputs.size() == 1;
  }

  // A cast to the type it has; of floats in the form for which every backend has a kernel outside groups.
  ValueId copy(const Rewriter& rewriter, GraphBuilder& g, ValueId value) const {
    DType dtype = graph_.dtype(value);
    const OpDef& cast = is_float(dtype) ? op::multi_cast : op::cast;
    return g.add1(cast, {rewriter.map(value)}, {{"to", std::string(dtype_name(dtype))}});
  }

  ValueId make_again(GraphBuilder& g, ValueId value) const {
    const Node& node = graph_.nodes()[size_t(graph_.producer(value))];
    return g.add(*node.op, {}, node.attrs, node.body)[0];
  }

  const Graph& graph_;
  std::vector<ValueId> roots_;
  std::vector<bool> updated_;          // by argument: its storage changes
  std::vector<ValueId> first_update_;  // by value: the target of the first update that has it
};

}  // namespace

std::vector<ValueId> find_roots(const Graph& graph) {
  std::vector<ValueId> roots(static_cast<size_t>(graph.num_values()));
  for (size_t i = 0; i < roots.size(); ++i) roots[i] = ValueId(i);
  for (const Node& node : graph.nodes())
    if (is_view(node)) roots[size_t(node.outputs[0])] = roots[size_t(node.inputs[0])];
  return roots;
}

StorageMap map_storage(const Graph& graph, const StreamAssignment& assignment) {
  return StorageMapper(graph, assignment).run();
}

Graph separate_updates(Graph graph) {
  Separation separation(graph);
  return separation.needed() ? separation.run() : std::move(graph);
}

}  // namespace tokamak
