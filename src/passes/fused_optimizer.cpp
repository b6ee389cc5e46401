#include "passes/fused_optimizer.h"

#include "graph/rewriter.h"
#include "ops/adamw.h"

#include <algorithm>

namespace tokamak {
namespace {

struct Family {
  std::vector<int> nodes;
  double decay = 0;      // of those that decay
  bool is_read = false;  // by more than updates: each parameter is gathered from its parts
  int64_t bytes = 0;     // of what reads them
};

bool same_family(const Graph& graph, const Node& a, const Node& b) {
  if (graph.dtype(a.inputs[2]) != graph.dtype(b.inputs[2])) return false;
  for (const char* name : {"beta1", "beta2", "eps"})
    if (a.attrs.get_double(name) != b.attrs.get_double(name)) return false;
  return std::equal(a.inputs.begin() + 4, a.inputs.end(), b.inputs.begin() + 4);
}

class OptimizerFuser {
 public:
  OptimizerFuser(const Graph& graph, int64_t most_read)
      : graph_(graph), most_read_(most_read), users_(find_users(graph)), family_of_(graph.nodes().size(), -1) {
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      if (graph.nodes()[n].op == &op::adamw) join(int(n));
  }

  bool any() const { return !families_.empty(); }

  Graph rewrite() {
    Rewriter rewriter(graph_);
    is_made_.assign(size_t(graph_.num_values()), true);
    for (const Node& node : graph_.nodes()) mark(node, false);
    std::vector<const Node*> waiting;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (family_of_[n] < 0) {
        if (!copy(rewriter, node)) waiting.push_back(&node);
      } else if (const Family& family = families_[size_t(family_of_[n])]; family.nodes.back() == int(n)) {
        emit(rewriter, family);
        std::erase_if(waiting, [&](const Node* reader) { return copy(rewriter, *reader); });
      }
    }
    return rewriter.finish();
  }

 private:
  void mark(const Node& node, bool made) {
    for (ValueId output : node.outputs) is_made_[size_t(output)] = made;
  }

  // Whether it could be: what it reads of a family is there with the family's last node.
  bool copy(Rewriter& rewriter, const Node& node) {
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_made_[size_t(v)]; }))
      return false;
    rewriter.copy(node);
    mark(node, true);
    return true;
  }

  int64_t bytes_read(const Node& node) const {
    int64_t bytes = 0;
    for (ValueId output : node.outputs)
      for (int user : users_[size_t(output)])
        for (ValueId read : graph_.nodes()[size_t(user)].outputs) bytes += num_bytes(graph_.type(read));
    return bytes;
  }

  // What is read late joins the family that was begun last while there is room.
  void join(int n) {
    const Node& node = graph_.nodes()[size_t(n)];
    double decay = node.attrs.get_double("decay");
    int64_t bytes = bytes_read(node);
    auto fits = [&](const Family& f) {
      return same_family(graph_, graph_.nodes()[size_t(f.nodes[0])], node) &&
             (decay == 0 || f.decay == 0 || f.decay == decay) && f.is_read == (bytes > 0) &&
             f.bytes + bytes <= most_read_;
    };
    auto family = std::find_if(families_.rbegin(), families_.rend(), fits);
    size_t index = family == families_.rend() ? families_.size() : size_t(families_.rend() - family) - 1;
    if (index == families_.size()) families_.push_back({{}, 0, bytes > 0, 0});
    Family& joined = families_[index];
    joined.nodes.push_back(n);
    joined.bytes += bytes;
    if (decay != 0) joined.decay = decay;
    family_of_[size_t(n)] = int(index);
  }

  void emit(Rewriter& rewriter, const Family& family) {
    const Node& first = graph_.nodes()[size_t(family.nodes[0])];
    ValueIds inputs(first.inputs.begin() + 4, first.inputs.end()), outputs;
    std::vector<int64_t> decayed;
    for (int n : family.nodes) {
      const Node& node = graph_.nodes()[size_t(n)];
      inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.begin() + 4);
      outputs.insert(outputs.end(), node.outputs.begin(), node.outputs.end());
      decayed.push_back(node.attrs.get_double("decay") != 0);
      mark(node, true);
    }
    Attrs attrs{{"beta1", first.attrs.get_double("beta1")},
                {"beta2", first.attrs.get_double("beta2")},
                {"decay", family.decay},
                {"decayed", decayed},
                {"eps", first.attrs.get_double("eps")}};
    rewriter.replace(outputs, rewriter.in_place_of(first).add(op::multi_adamw, rewriter.map(inputs), attrs));
  }

  const Graph& graph_;
  int64_t most_read_;
  Users users_;
  std::vector<Family> families_;
  std::vector<int> family_of_;  // by node; -1: not an update
  std::vector<bool> is_made_;   // by value, in the new graph
};

}  // namespace

bool fused_optimizer(Graph& graph, const PassContext& context) {
  constexpr int64_t kMib = int64_t(1) << 20;
  OptimizerFuser fuser(graph, context.bucket_mib * kMib);
  if (!fuser.any()) return false;
  graph = fuser.rewrite();
  return true;
}

}  // namespace tokamak
