#include "graph/single_node.h"
#include "ops/collective.h"
#include "ops/flop_rate.h"
#include "plan/plan.h"

#include <algorithm>

namespace tokamak {
namespace {

// What a kernel reads and writes, if it fits into the last-level cache as a whole, was mostly left there by the kernels
// before it. Caches move bytes several times faster than memory does; 2 is on the safe side.
constexpr double kCacheSpeedup = 2;

// A group does one node of its body after the other, on data at hand.
double arithmetic_seconds(const Graph& graph, const Node& node, const Target& target) {
  if (node.body) {
    double seconds = 0;
    for (const Node& inner : node.body->nodes()) seconds += arithmetic_seconds(*node.body, inner, target);
    return seconds;
  }
  return node_cost(graph, node).flops / flop_rate(graph, node, target);
}

// What a collective takes on its axis' links, or longer where memory does.
double collective_seconds(const Node& node, const Cost& cost, const Target& target, double memory) {
  bool gathers = node.op == &op::all_gather || node.op == &op::reduce_scatter;
  LinkRate link = target.link(node.attrs.get_string("axis"));
  return std::max(memory, cost.link_bytes / (link.bandwidth * (gathers ? target.gather_share : 1))) + link.seconds;
}

bool is_low_precision(const Graph& graph, const Node& node) { return dtype_bytes(graph.dtype(node.inputs[0])) == 2; }

}  // namespace

Launch price(const Graph& graph, int node, const Platform& platform) {
  const Target& target = platform.target;
  const Node& kernel = graph.nodes()[size_t(node)];
  Launch launch{node, node_cost(graph, kernel)};
  double bandwidth = target.memory_bandwidth * (launch.cost.bytes <= target.cache_bytes ? kCacheSpeedup : 1);
  double arithmetic = arithmetic_seconds(graph, kernel, target), memory = launch.cost.bytes / bandwidth;
  launch.memory_bound = memory > arithmetic;
  launch.seconds = std::max(arithmetic, memory) + draw_seconds(launch.cost, target) + target.launch_seconds;
  if (kernel.op->together) launch.seconds = collective_seconds(kernel, launch.cost, target, memory);
  if (const auto& measured = platform.tuning.measured_seconds; !measured.empty())
    if (auto at = measured.find(kernel_key(graph, kernel)); at != measured.end())
      launch.seconds = at->second / (is_low_precision(graph, kernel) ? target.sustained_share : 1);
  if (kernel.op->together)
    launch.taken_share = std::max(target.link_units, launch.cost.bytes / target.memory_bandwidth / launch.seconds);
  return launch;
}

}  // namespace tokamak
