#include "passes/fuse_prologues.h"

#include "graph/rewriter.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/movement.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tokamak {
namespace {

class PrologueFuser {
 public:
  PrologueFuser(const Graph& graph, const Platform& platform)
      : graph_(graph), platform_(platform), users_(find_users(graph)), escaping_(find_escaping(graph)),
        goes_(graph.nodes().size(), false) {}

  bool run() {
    for (int n = 0; n < int(graph_.nodes().size()); ++n)
      if (std::optional<Node> joined = join(n)) {
        for (int goes : rows_of(left_operand(n)).nodes) goes_[size_t(goes)] = true;
        joined_.emplace(n, std::move(*joined));
      }
    return !joined_.empty();
  }

  Graph rewrite() const {
    Rewriter rewriter(graph_);
    for (int n = 0; n < int(graph_.nodes().size()); ++n)
      if (auto joined = joined_.find(n); joined != joined_.end())
        rewriter.copy(joined->second);
      else if (!goes_[size_t(n)])
        rewriter.copy(node(n));
    return rewriter.finish();
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[size_t(n)]; }
  ValueId left_operand(int matmul) const { return node(matmul).inputs[size_t(read_matmul(graph_, node(matmul)).a)]; }

  // What a left operand is made by: a node, and what shows its result in other shapes, to the matmul alone.
  struct Rows {
    ValueId made = kNoValue;
    std::vector<int> nodes;  // the last one makes it
  };
  Rows rows_of(ValueId a) const {
    Rows rows{a, {}};
    for (int n = graph_.producer(a); n >= 0; n = graph_.producer(rows.made)) {
      rows.nodes.push_back(n);
      if (node(n).op != &op::reshape || escaping_[size_t(rows.made)] || users_[size_t(rows.made)].size() != 1) break;
      rows.made = node(n).inputs[0];
    }
    return rows;
  }

  // The matmul with the row group before it, in values of the old graph.
  std::optional<Node> join(int n) const {
    if (node(n).op != &op::matmul && node(n).op != &op::fused_matmul) return {};
    MatmulForm form = read_matmul(graph_, node(n));
    if (form.prologue) return {};
    ValueId a = node(n).inputs[size_t(form.a)];
    Rows rows = rows_of(a);
    if (graph_.producer(rows.made) < 0 || !may_join(rows, n, a)) return {};
    Node joined = make_node(rows, node(n), std::move(form));
    if (!platform_.kernels->takes_matmul(graph_, joined)) return {};
    return joined;
  }

  // The group moves to the matmul, so whoever reads what else it makes comes later.
  bool may_join(const Rows& rows, int matmul, ValueId a) const {
    const Node& group = node(rows.nodes.back());
    if (group.op != &op::row || group.phase != node(matmul).phase || escaping_[size_t(rows.made)]) return false;
    const ValueIds& inputs = node(matmul).inputs;
    if (users_[size_t(rows.made)].size() != 1 || std::count(inputs.begin(), inputs.end(), a) != 1) return false;
    for (ValueId made : group.outputs)
      for (int user : users_[size_t(made)])
        if (made != rows.made && user <= matmul) return false;
    return true;
  }

  Node make_node(const Rows& rows, const Node& matmul, MatmulForm form) const {
    const Node& group = node(rows.nodes.back());
    Node joined = matmul;
    joined.op = &op::fused_matmul;
    joined.attrs = {};
    joined.inputs.erase(joined.inputs.begin() + form.a);
    for (int* position :
         {&form.b, &form.scale_a, &form.scale_b, &form.bias, &form.addend, &form.operand, &form.narrow_scale})
      if (*position > form.a) --*position;
    ValueId a = matmul.inputs[size_t(form.a)];
    form.a = -1;
    form.prologue = MatmulPrologue{read_group(group), {}, {}};
    for (ValueId input : group.inputs) form.prologue->inputs.push_back(position_of(input, joined.inputs));
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      ValueId made = group.outputs[i];
      if (made == rows.made) form.prologue->rows.results[i].type.shape = graph_.shape(a);
      form.prologue->outputs.push_back(made == rows.made ? -1 : position_of(made, joined.outputs));
    }
    ValueTypes types;
    for (ValueId input : joined.inputs) types.push_back(graph_.type(input));
    joined.body = make_body(form, types);
    return joined;
  }

  // Among the values, to which it is added where it is not one of them.
  static int position_of(ValueId value, ValueIds& values) {
    auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return int(found - values.begin());
    values.push_back(value);
    return int(values.size()) - 1;
  }

  const Graph& graph_;
  const Platform& platform_;
  Users users_;                 // by value
  std::vector<bool> escaping_;  // by value
  std::vector<bool> goes_;      // by node: it is part of another
  std::map<int, Node> joined_;  // by the matmul
};

}  // namespace

bool fuse_prologues(Graph& graph, const PassContext& context) {
  PrologueFuser fuser(graph, context);
  if (!fuser.run()) return false;
  graph = fuser.rewrite();
  return true;
}

}  // namespace tokamak
