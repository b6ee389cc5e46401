#include "passes/fuse.h"

#include "graph/rewriter.h"
#include "ops/ops.h"
#include "passes/combine_cores.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

constexpr size_t kMaxOperands = 24;  // inputs and outputs of a group
constexpr int kMaxNodes = 64;        // of a body
constexpr int kCheapNodes = 4;       // of a producer that every reader computes again
constexpr double kNear = 16;         // how far a node may move without its effect on memory being weighed

// A node of the old graph, or what became of a group that absorbed others.
struct Unit {
  const Node* node = nullptr;
  std::optional<GroupCore> core;  // of groups
  double position = 0;            // units run in this order
  bool live = true;
};

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph), escaping_(find_escaping(graph)), users_(size_t(graph.num_values())),
        producer_(size_t(graph.num_values()), -1) {
    for (const Node& node : graph.nodes()) read_node(node);
    for (size_t u = units_.size(); u-- > 0;) {
      units_[u].live = has_readers(int(u));
      if (units_[u].live) link(int(u));
    }
  }

  bool run() {
    bool any = false;
    for (int consumer = 0; consumer < int(units_.size()); ++consumer)
      while (units_[size_t(consumer)].live && units_[size_t(consumer)].core && absorb_one(consumer)) any = true;
    return any;
  }

  Graph rewrite() {
    std::vector<int> order(units_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return units_[size_t(a)].position < units_[size_t(b)].position; });
    Rewriter rewriter(graph_);
    for (int u : order) {
      Unit& unit = units_[size_t(u)];
      if (!unit.live) continue;
      if (unit.core)
        emit(rewriter, unit);
      else
        rewriter.copy(*unit.node);
    }
    return rewriter.finish();
  }

 private:
  // Groups read through reshapes: their bodies do not depend on the shape in which a value arrives.
  ValueId behind_views(ValueId value) const {
    for (int p = graph_.producer(value); p >= 0 && graph_.nodes()[size_t(p)].op == &op::reshape;
         p = graph_.producer(value))
      value = graph_.nodes()[size_t(p)].inputs[0];
    return value;
  }

  void read_node(const Node& node) {
    Unit unit{&node, {}, double(units_.size()), true};
    if (node.op == &op::group && node.attrs.get_string("kind") != "matmul") {
      unit.core = core_of_group(graph_, node);
      for (CoreValue& value : unit.core->values)
        if (!value.op && !value.raw) value.outer = behind_views(value.outer);
    }
    for (ValueId output : node.outputs) producer_[size_t(output)] = int(units_.size());
    units_.push_back(std::move(unit));
  }

  std::vector<ValueId> inputs(const Unit& unit) const {
    if (unit.core) return unit.core->inputs();
    std::vector<ValueId> inputs = unit.node->inputs;
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    return inputs;
  }
  std::vector<ValueId> outputs(const Unit& unit) const {
    if (!unit.core) return unit.node->outputs;
    std::vector<ValueId> outputs;
    for (const CoreResult& result : unit.core->results) outputs.push_back(result.outer);
    return outputs;
  }

  bool is_read(ValueId value) const { return escaping_[size_t(value)] || !users_[size_t(value)].empty(); }
  bool has_readers(int u) const {
    std::vector<ValueId> values = outputs(units_[size_t(u)]);
    return std::any_of(values.begin(), values.end(), [&](ValueId value) { return is_read(value); });
  }
  void link(int u) {
    for (ValueId input : inputs(units_[size_t(u)])) users_[size_t(input)].push_back(u);
  }
  void unlink(int u) {
    for (ValueId input : inputs(units_[size_t(u)])) std::erase(users_[size_t(input)], u);
  }

  double position(int u) const { return units_[size_t(u)].position; }
  double bytes(ValueId value) const { return double(num_bytes(graph_.type(value))); }

  bool absorb_one(int consumer) {
    for (ValueId input : units_[size_t(consumer)].core->inputs()) {
      int producer = producer_[size_t(input)];
      if (producer < 0 || !units_[size_t(producer)].core) continue;
      if (copy_generator(producer, consumer) || copy_cheap(producer, consumer) || merge(producer, consumer))
        return true;
    }
    return false;
  }

  static bool within_limits(const GroupCore& core) {
    return core.num_nodes() <= kMaxNodes && core.inputs().size() + core.results.size() <= kMaxOperands;
  }

  // The consumer computes `core` from now on; a producer that nobody reads any more goes.
  void become(int consumer, GroupCore core, int producer) {
    unlink(consumer);
    core.prune();
    units_[size_t(consumer)].core = std::move(core);
    link(consumer);
    if (!has_readers(producer)) {
      units_[size_t(producer)].live = false;
      unlink(producer);
    }
  }

  bool copy_generator(int producer, int consumer) {
    const GroupCore& from = *units_[size_t(producer)].core;
    if (!is_generator(from)) return false;
    std::optional<GroupCore> core = inline_generator(from, *units_[size_t(consumer)].core);
    if (!core || !within_limits(*core)) return false;
    become(consumer, std::move(*core), producer);
    return true;
  }

  // Several groups read the one result of a small flat group whose inputs are no larger: each computes it again.
  bool copy_cheap(int producer, int consumer) {
    const GroupCore& from = *units_[size_t(producer)].core;
    if (from.kind != "flat" || from.num_nodes() > kCheapNodes || from.results.size() != 1) return false;
    ValueId value = from.results[0].outer;
    const auto& users = users_[size_t(value)];
    bool by_groups = std::all_of(users.begin(), users.end(), [&](int u) { return units_[size_t(u)].core.has_value(); });
    if (users.size() < 2 || !by_groups || escaping_[size_t(value)]) return false;
    double read = 0;
    for (ValueId input : from.inputs()) read += bytes(input);
    if (read > bytes(value) + 4096) return false;  // a vector or a few scalars more do not count
    std::optional<GroupCore> core = combine_cores(from, *units_[size_t(consumer)].core);
    if (!core) return false;
    std::erase_if(core->results, [&](const CoreResult& result) { return result.outer == value; });
    if (!within_limits(*core)) return false;
    become(consumer, std::move(*core), producer);
    return true;
  }

  // Joined with a forward group, a recomputed one would move back to the forward pass and become its duplicate.
  bool is_recomputed_from(int producer, int consumer) const {
    const Node &p = *units_[size_t(producer)].node, &c = *units_[size_t(consumer)].node;
    return c.has_tag("recompute") && c.has_tag("backward") && !p.has_tag("backward");
  }

  bool merge(int producer, int consumer) {
    if (is_recomputed_from(producer, consumer)) return false;
    std::optional<double> at = legal_position(producer, consumer);
    if (!at || !memory_allows(producer, consumer, *at)) return false;
    std::optional<GroupCore> core = combine_cores(*units_[size_t(producer)].core, *units_[size_t(consumer)].core);
    if (!core) return false;
    std::erase_if(core->results, [&](const CoreResult& result) {
      if (escaping_[size_t(result.outer)]) return false;
      const auto& users = users_[size_t(result.outer)];
      return std::all_of(users.begin(), users.end(), [&](int u) { return u == consumer; });
    });
    if (!within_limits(*core)) return false;
    unlink(producer);
    unlink(consumer);
    core->prune();
    for (const CoreResult& result : core->results) producer_[size_t(result.outer)] = consumer;
    units_[size_t(producer)].live = false;
    units_[size_t(consumer)].core = std::move(*core);
    units_[size_t(consumer)].position = *at;
    link(consumer);
    return true;
  }

  // Where both can run as one: at the consumer when all other readers of the producer come later, else between the last
  // of what the consumer needs and the first of those readers. Either way no other unit can lie between them.
  std::optional<double> legal_position(int producer, int consumer) const {
    double first_reader = std::numeric_limits<double>::infinity(), last_input = position(producer);
    for (ValueId output : outputs(units_[size_t(producer)]))
      for (int user : users_[size_t(output)])
        if (user != consumer) first_reader = std::min(first_reader, position(user));
    if (first_reader > position(consumer)) return position(consumer);
    for (ValueId input : inputs(units_[size_t(consumer)]))
      if (int p = producer_[size_t(input)]; p >= 0 && p != producer) last_input = std::max(last_input, position(p));
    double middle = (last_input + first_reader) / 2;
    if (last_input < middle && middle < first_reader) return middle;
    return {};
  }

  // Moving a node far must not keep more bytes alive than fusing saves.
  bool memory_allows(int producer, int consumer, double at) const {
    const Unit &p = units_[size_t(producer)], &c = units_[size_t(consumer)];
    double held = 0, saved = 0;
    if (at - p.position > kNear)
      for (ValueId input : inputs(p))
        if (producer_[size_t(input)] >= 0 && last_use(input) < at) held += bytes(input);
    if (c.position - at > kNear)
      for (ValueId output : outputs(c)) held += bytes(output);
    for (ValueId output : outputs(p)) {
      const auto& users = users_[size_t(output)];
      if (!escaping_[size_t(output)] && users.size() == 1 && users[0] == consumer) saved += bytes(output);
    }
    return held == 0 || held <= saved;
  }

  double last_use(ValueId value) const {
    double last = escaping_[size_t(value)] ? std::numeric_limits<double>::infinity() : 0;
    for (int user : users_[size_t(value)]) last = std::max(last, position(user));
    return last;
  }

  void emit(Rewriter& rewriter, Unit& unit) const {
    GroupCore& core = *unit.core;
    std::erase_if(core.results, [&](const CoreResult& result) { return !is_read(result.outer); });
    core.prune();
    std::vector<ValueId> inputs = core.inputs();
    std::vector<ValueType> types;
    for (ValueId input : inputs) types.push_back(graph_.type(input));
    rewriter.builder().set_tags(unit.node->tags);
    auto made = rewriter.builder().add(op::group, rewriter.map(inputs), {{"kind", core.kind}}, make_body(core, types));
    rewriter.builder().set_tags({});
    for (size_t i = 0; i < made.size(); ++i) rewriter.replace(core.results[i].outer, made[i]);
  }

  const Graph& graph_;
  std::vector<bool> escaping_;
  std::vector<Unit> units_;
  std::vector<std::vector<int>> users_;  // by value: live units that read it
  std::vector<int> producer_;            // by value: the unit that makes it; -1 for arguments
};

}  // namespace

bool fuse(Graph& graph, const PassContext& context) {
  bool changed = fuse_matmul_epilogues(graph, context);
  Fuser fuser(graph);
  if (!fuser.run()) return changed;
  graph = fuser.rewrite();
  return true;
}

}  // namespace tokamak
