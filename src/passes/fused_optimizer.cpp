#include "passes/fused_optimizer.h"

#include "graph/rewriter.h"
#include "ops/adamw.h"

#include <algorithm>

namespace tokamak {
namespace {

struct Family {
  std::vector<int> nodes;
  double decay = 0;  // of those that decay
};

bool same_family(const Node& a, const Node& b) {
  for (const char* name : {"beta1", "beta2", "eps"})
    if (a.attrs.get_double(name) != b.attrs.get_double(name)) return false;
  return std::equal(a.inputs.begin() + 4, a.inputs.end(), b.inputs.begin() + 4);
}

class OptimizerFuser {
 public:
  explicit OptimizerFuser(const Graph& graph) : graph_(graph), family_of_(graph.nodes().size(), -1) {
    std::vector<std::vector<int>> users = find_users(graph);
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      if (const Node& node = graph.nodes()[n]; node.op == &op::adamw && ends_here(node, users)) join(int(n));
  }

  bool any() const {
    return std::any_of(families_.begin(), families_.end(), [](const Family& f) { return f.nodes.size() > 1; });
  }

  Graph rewrite() const {
    Rewriter rewriter(graph_);
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Family* family = family_of_[n] < 0 ? nullptr : &families_[size_t(family_of_[n])];
      if (!family || family->nodes.size() < 2)
        rewriter.copy(graph_.nodes()[n]);
      else if (family->nodes.back() == int(n))
        emit(rewriter, *family);
    }
    return rewriter.finish();
  }

 private:
  // Moving the node down is safe when nothing but updates and results reads it.
  static bool ends_here(const Node& node, const std::vector<std::vector<int>>& users) {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return users[size_t(v)].empty(); });
  }

  void join(int n) {
    const Node& node = graph_.nodes()[size_t(n)];
    double decay = node.attrs.get_double("decay");
    auto fits = [&](const Family& f) {
      return same_family(graph_.nodes()[size_t(f.nodes[0])], node) && (decay == 0 || f.decay == 0 || f.decay == decay);
    };
    auto family = std::find_if(families_.begin(), families_.end(), fits);
    if (family == families_.end()) family = families_.insert(families_.end(), Family{});
    family->nodes.push_back(n);
    if (decay != 0) family->decay = decay;
    family_of_[size_t(n)] = int(family - families_.begin());
  }

  void emit(Rewriter& rewriter, const Family& family) const {
    const Node& first = graph_.nodes()[size_t(family.nodes[0])];
    std::vector<ValueId> inputs(first.inputs.begin() + 4, first.inputs.end()), outputs;
    std::vector<int64_t> decayed;
    for (int n : family.nodes) {
      const Node& node = graph_.nodes()[size_t(n)];
      inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.begin() + 4);
      outputs.insert(outputs.end(), node.outputs.begin(), node.outputs.end());
      decayed.push_back(node.attrs.get_double("decay") != 0);
    }
    Attrs attrs{{"beta1", first.attrs.get_double("beta1")},
                {"beta2", first.attrs.get_double("beta2")},
                {"decay", family.decay},
                {"decayed", decayed},
                {"eps", first.attrs.get_double("eps")}};
    rewriter.replace(outputs, rewriter.in_place_of(first).add(op::multi_adamw, rewriter.map(inputs), attrs));
  }

  const Graph& graph_;
  std::vector<Family> families_;
  std::vector<int> family_of_;  // by node; -1: not an update
};

}  // namespace

bool fused_optimizer(Graph& graph, const PassContext&) {
  OptimizerFuser fuser(graph);
  if (!fuser.any()) return false;
  graph = fuser.rewrite();
  return true;
}

}  // namespace tokamak
