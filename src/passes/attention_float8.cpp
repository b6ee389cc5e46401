#include "passes/attention_float8.h"

#include "graph/rewriter.h"
#include "ops/attention.h"
#include "ops/pointwise.h"

#include <map>
#include <optional>
#include <set>

namespace tokamak {
namespace {

// What a node of attention writes in place of a cast.
struct Narrow {
  ValueId factor, values;  // of the old graph
  std::set<int> nodes;     // that it makes superfluous
};

bool is_attention(const Node& node) { return node.op == &op::attention || node.op == &op::attention_grad; }

class AttentionFloat8 {
 public:
  AttentionFloat8(const Graph& graph, const PassContext& context)
      : graph_(graph), users_(find_users(graph)), escaping_(find_escaping(graph)), rewriter_(graph) {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      bool wide = is_attention(node) && !node.attrs.get_bool("float8", false);
      if (wide && context.kernels->attention_extras(graph, node)) find(int(n));
    }
  }

  bool any() const { return !narrow_.empty(); }

  Graph run() {
    std::set<int> superfluous;
    for (const auto& [n, narrow] : narrow_) superfluous.insert(narrow.nodes.begin(), narrow.nodes.end());
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (auto narrow = narrow_.find(int(n)); narrow != narrow_.end())
        write(node, narrow->second);
      else if (!superfluous.contains(int(n)))
        rewriter_.copy(node);
    }
    return rewriter_.finish();
  }

 private:
  // The node that alone reads a value; null: there is none.
  const Node* reader_of(ValueId value) const {
    std::span<const int> users = users_[size_t(value)];
    return users.size() == 1 && !escaping_[size_t(value)] ? &graph_.nodes()[size_t(users[0])] : nullptr;
  }

  // Of a gradient the cast must be the only reader.
  void find(int n) {
    const Node& node = graph_.nodes()[size_t(n)];
    bool gradient = node.op == &op::attention_grad;
    if (gradient && !reader_of(node.outputs[0])) return;
    for (int wide : users_[size_t(node.outputs[0])])
      if (std::optional<Narrow> narrow = cast_by(wide, n, gradient ? DType::kF8E5M2 : DType::kF8E4M3))
        narrow_[n] = *narrow;
  }

  // The cast that begins with node `wide`, by a factor that is there before node `n`.
  std::optional<Narrow> cast_by(int wide, int n, DType type) const {
    const Node& first = graph_.nodes()[size_t(wide)];
    if (first.op != &op::cast || graph_.dtype(first.outputs[0]) != DType::kF32) return {};
    if (first.phase != graph_.nodes()[size_t(n)].phase) return {};  // computed again, not to be kept
    const Node* scaled = reader_of(first.outputs[0]);
    if (!scaled || scaled->op != &op::mul || scaled->inputs[0] != first.outputs[0]) return {};
    ValueId factor = scaled->inputs[1];
    if (!graph_.shape(factor).empty() || graph_.producer(factor) > n) return {};
    const Node* narrow = reader_of(scaled->outputs[0]);
    if (!narrow || narrow->op != &op::cast || graph_.dtype(narrow->outputs[0]) != type) return {};
    ValueId values = narrow->outputs[0];
    return Narrow{factor, values, {wide, graph_.producer(scaled->outputs[0]), graph_.producer(values)}};
  }

  void write(const Node& node, const Narrow& narrow) {
    Attrs attrs = node.attrs;
    attrs.set("float8", true);
    ValueIds inputs = rewriter_.map(node.inputs);
    inputs.push_back(rewriter_.map(narrow.factor));
    ValueIds made = rewriter_.in_place_of(node).add(*node.op, inputs, attrs);
    size_t kept = node.op == &op::attention ? 0 : 1;  // of a gradient nothing has 16 bits
    rewriter_.replace(narrow.values, kept == 0 ? made.back() : made[0]);
    for (size_t i = kept; i < node.outputs.size(); ++i) rewriter_.replace(node.outputs[i], made[i]);
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> escaping_;
  Rewriter rewriter_;
  std::map<int, Narrow> narrow_;  // by node of attention
};

}  // namespace

bool attention_float8(Graph& graph, const PassContext& context) {
  AttentionFloat8 rewrite(graph, context);
  if (!rewrite.any()) return false;
  graph = rewrite.run();
  return true;
}

}  // namespace tokamak
