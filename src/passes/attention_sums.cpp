#include "passes/attention_sums.h"

#include "graph/rewriter.h"
#include "ops/attention.h"
#include "ops/movement.h"
#include "ops/reduce.h"

#include <map>

namespace tokamak {
namespace {

// The attention_grad node whose first output this node sums over batch and time; -1: none.
int summed_attention(const Graph& graph, const Node& node) {
  if (node.op != &op::reduce_sum || node.attrs.get_ints("dims") != std::vector<int64_t>{0, 1}) return -1;
  int producer = graph.producer(node.inputs[0]);
  if (producer < 0) return -1;
  const Node& attention = graph.nodes()[size_t(producer)];
  return attention.op == &op::attention_grad && attention.outputs.size() == 1 ? producer : -1;
}

class AttentionSums {
 public:
  AttentionSums(const Graph& graph, const PassContext& context) : graph_(graph), rewriter_(graph) {
    for (const Node& node : graph.nodes()) {
      int attention = summed_attention(graph, node);
      if (attention >= 0 && context.kernels->attention_extras(graph, graph.nodes()[size_t(attention)]))
        sums_[attention] = kNoValue;  // until it is made
    }
  }

  bool any() const { return !sums_.empty(); }

  Graph run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (auto attention = sums_.find(int(n)); attention != sums_.end())
        attention->second = add_sums(node);
      else if (auto summed = sums_.find(summed_attention(graph_, node)); summed != sums_.end())
        rewriter_.replace(node.outputs[0],
                          reshape(rewriter_.in_place_of(node), summed->second, graph_.shape(node.outputs[0])));
      else
        rewriter_.copy(node);
    }
    return rewriter_.finish();
  }

 private:
  ValueId add_sums(const Node& node) {
    Attrs attrs = node.attrs;
    attrs.set("sums", true);
    ValueIds made = rewriter_.in_place_of(node).add(op::attention_grad, rewriter_.map(node.inputs), attrs);
    rewriter_.replace(node.outputs[0], made[0]);
    return made[1];
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<int, ValueId> sums_;  // by attention_grad node, in the new graph
};

}  // namespace

bool attention_sums(Graph& graph, const PassContext& context) {
  AttentionSums rewrite(graph, context);
  if (!rewrite.any()) return false;
  graph = rewrite.run();
  return true;
}

}  // namespace tokamak
