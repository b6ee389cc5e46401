#include "passes/link_clock.h"

#include "cost/flop_rate.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "passes/gathered_parameters.h"

#include <algorithm>

namespace tokamak {

LinkClock::LinkClock(const Graph& graph, const PassContext& context)
    : graph_(graph), target_(context.target), gathers_(count_gathers(graph)), there_(size_t(graph.num_values()), 0) {}

bool LinkClock::computes(int n) const { return node(n).op->fusion != Fusion::kView && !node(n).op->together; }

bool LinkClock::is_gathering(int n) const {
  return node(n).op == &op::all_gather && !gathers_[size_t(node(n).outputs[0])];
}

double LinkClock::seconds_of(int n) const {
  return node_cost(graph_, node(n)).flops / flop_rate(graph_, node(n), target_);
}

double LinkClock::ready_at(int n) const {
  double seconds = 0;
  for (ValueId input : node(n).inputs) seconds = std::max(seconds, there_[size_t(input)]);
  return seconds;
}

void LinkClock::take(int n) {
  order_.push_back(n);
  const Node& next = node(n);
  double there = next.op->fusion == Fusion::kView ? ready_at(n) : 0;
  if (computes(n))
    computed_ = std::max(computed_, ready_at(n)) + seconds_of(n);
  else if (next.op->together && !gathers_[size_t(next.outputs[0])])  // parameters come ahead: bucket
    there = sent_ = std::max(sent_, computed_) +
                    node_cost(graph_, next).link_bytes / target_.link(next.attrs.get_string("axis")).bandwidth;
  for (ValueId output : next.outputs) there_[size_t(output)] = there;
}

bool reorder(Graph& graph, const std::vector<int>& order) {
  if (std::is_sorted(order.begin(), order.end())) return false;
  Rewriter rewriter(graph);
  for (int n : order) rewriter.copy(graph.nodes()[size_t(n)]);
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
