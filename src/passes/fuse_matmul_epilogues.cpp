#include "graph/rewriter.h"
#include "graph/single_node.h"
#include "ops/ops.h"
#include "passes/fuse.h"
#include "passes/group_core.h"

#include <unordered_map>

namespace tokamak {
namespace {

bool is_group(const Node& node, std::string_view kind) {
  return node.op == &op::group && node.attrs.get_string("kind") == kind;
}

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const Target& target)
      : graph_(graph), target_(target), users_(find_users(graph)), escaping_(find_escaping(graph)) {}

  bool run() {
    joined_.assign(graph_.nodes().size(), -1);
    bool any = false;
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (graph_.nodes()[n].op == &op::matmul) any |= match(int(n));
    return any;
  }

  Graph rewrite() const {
    Rewriter rewriter(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (joined_[n] < 0)
        rewriter.copy(graph_.nodes()[n]);
      else if (size_t(joined_[n]) == n)
        emit(rewriter, chains_.at(n));
    return rewriter.finish();
  }

 private:
  struct Chain {
    const Node* matmul;
    ValueId bias;
    bool gelu;
    const Node* last;
  };

  // The flat group that is the only reader of the value, or -1.
  int only_reader(ValueId value) const {
    const auto& users = users_[size_t(value)];
    bool alone = users.size() == 1 && !escaping_[size_t(value)];
    return alone && is_group(graph_.nodes()[size_t(users[0])], "flat") ? users[0] : -1;
  }

  // The vector that the group adds to every row of `x`, when that is all it does; else kNoValue.
  ValueId added_bias(const Node& group, ValueId x) const {
    GroupCore core = core_of_group(graph_, group);
    if (core.values.size() != 3 || core.results.size() != 1 || core.values[2].op != &op::add) return kNoValue;
    for (int side : {0, 1}) {
      const CoreValue &full = core.values[size_t(side)], &bias = core.values[size_t(1 - side)];
      bool fits = full.outer == x && bias.outer != x && bias.outer != kNoValue && core.is_full(full);
      if (fits && graph_.shape(bias.outer) == Shape{graph_.shape(x).back()} &&
          core.values[2].operands[0] != core.values[2].operands[1] && (bias.along_cols || core.cols == 1) &&
          core.cols == graph_.shape(x).back() && !bias.along_rows)
        return bias.outer;
    }
    return kNoValue;
  }

  bool is_gelu(const Node& group) const {
    GroupCore core = core_of_group(graph_, group);
    return core.values.size() == 2 && core.values[1].op == &op::gelu;
  }

  // Measured to be faster without an epilogue.
  bool stays_plain(const Node& matmul) const {
    return !target_.plain_matmuls.empty() && target_.plain_matmuls.contains(kernel_key(graph_, matmul));
  }

  bool match(int n) {
    const Node& matmul = graph_.nodes()[size_t(n)];
    if (stays_plain(matmul)) return false;
    int add = target_.matmul_bias ? only_reader(matmul.outputs[0]) : -1;
    if (add < 0) return false;
    const Node& group = graph_.nodes()[size_t(add)];
    ValueId bias = added_bias(group, matmul.outputs[0]);
    if (bias == kNoValue || graph_.type(group.outputs[0]) != graph_.type(matmul.outputs[0])) return false;
    int last = add, gelu = target_.matmul_gelu ? only_reader(group.outputs[0]) : -1;
    if (gelu >= 0 && is_gelu(graph_.nodes()[size_t(gelu)]) &&
        graph_.type(graph_.nodes()[size_t(gelu)].outputs[0]) == graph_.type(matmul.outputs[0]))
      last = gelu;
    for (int member : {n, add, last}) joined_[size_t(member)] = last;
    chains_[size_t(last)] = {&matmul, bias, last != add, &graph_.nodes()[size_t(last)]};
    return true;
  }

  void emit(Rewriter& rewriter, const Chain& chain) const {
    auto body = std::make_shared<Graph>("body");
    GraphBuilder g(*body);
    std::vector<ValueId> inputs = chain.matmul->inputs, arguments;
    inputs.push_back(chain.bias);
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments.push_back(g.input("a" + std::to_string(i), graph_.type(inputs[i])));
    if (chain.matmul->has_tag("tf32")) g.set_tags({"tf32"});
    ValueId y = add(g, g.add1(op::matmul, {arguments[0], arguments[1]}, chain.matmul->attrs), arguments[2]);
    body->add_result("r0", chain.gelu ? gelu(g, y) : y);
    rewriter.builder().set_tags(chain.matmul->tags);
    rewriter.replace(chain.last->outputs,
                     rewriter.builder().add(op::group, rewriter.map(inputs), {{"kind", std::string("matmul")}}, body));
    rewriter.builder().set_tags({});
  }

  const Graph& graph_;
  const Target& target_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> escaping_;
  std::vector<int> joined_;                   // by node: the last node of its chain, or -1
  std::unordered_map<size_t, Chain> chains_;  // by last node
};

}  // namespace

bool fuse_matmul_epilogues(Graph& graph, const PassContext& context) {
  EpilogueFuser fuser(graph, context.target);
  if (!fuser.run()) return false;
  graph = fuser.rewrite();
  return true;
}

}  // namespace tokamak
