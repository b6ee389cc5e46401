#include "cost/price.h"

#include "cost/flop_rate.h"
#include "cost/link_ways.h"
#include "graph/single_node.h"
#include "ops/collective.h"
#include "ops/row_block.h"

#include <algorithm>
#include <span>

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

constexpr std::string_view kGatherWays[] = {"", kRingLowWay, kParallelTreesWay};
constexpr std::string_view kSumWays[] = {kSumWay, kSumLowWay, kTreeWay, kTreeLowWay, kSwitchWay};

// The link that takes so many bytes soonest, of the axis' ways for such a collective; its own where it has none.
LinkRate fastest_link(const Target& target, const std::string& axis, std::span<const std::string_view> ways,
                      double bytes) {
  LinkRate best = target.link(axis);
  bool is_any = false;
  for (std::string_view way : ways) {
    auto at = target.axis_links.find(axis + std::string(way));
    if (at == target.axis_links.end()) continue;
    LinkRate link{at->second[0], at->second[1]};
    bool is_sooner = bytes / link.bandwidth + link.seconds < bytes / best.bandwidth + best.seconds;
    if (!is_any || is_sooner) best = link;
    is_any = true;
  }
  return best;
}

void price_links(const Node& node, const Target& target, Price& price) {
  bool gathers = node.op == &op::all_gather || node.op == &op::reduce_scatter, sums = node.op == &op::all_reduce;
  std::span<const std::string_view> ways;
  if (gathers) ways = kGatherWays;
  if (sums) ways = kSumWays;
  LinkRate link = fastest_link(target, node.attrs.get_string("axis"), ways, price.cost.link_bytes);
  price.link = price.cost.link_bytes / (link.bandwidth * (gathers ? target.gather_share : 1));
  price.fixed = link.seconds;
  price.seconds = std::max(price.memory, price.link) + price.fixed;
}

void price_kernel(const Target& target, Price& price) {
  price.fixed = target.launch_seconds;
  price.seconds = std::max(price.arithmetic, price.memory) + price.draws + price.fixed;
}

// In proportion to the bytes that a collective moves while it lasts, but for those that units must move.
void share_device(const Node& node, const Target& target, Price& price) {
  if (!node.op->together) return;
  double units = units_taken(target, node.attrs.get_string("axis"));
  price.taken_share = std::max(units, price.cost.bytes / target.memory_bandwidth / price.seconds);
}

bool is_low_precision(const Graph& graph, const Node& node) { return dtype_bytes(graph.dtype(node.inputs[0])) <= 2; }

// What took so long alone, in a long run: the closer to the rate of the tensor cores, the more power it takes.
double sustained_seconds(double alone, double arithmetic, const Target& target) {
  double used = std::min(1.0, arithmetic / alone);
  return alone * (1 + used * (1 / target.sustained_share - 1));
}

}  // namespace

Price price(const Graph& graph, const Node& node, const Target& target) {
  Price price;
  if (node.op->fusion == Fusion::kView) return price;
  price.cost = node_cost(graph, node);
  price.arithmetic = arithmetic_seconds(graph, node, target);
  double bandwidth = target.memory_bandwidth * (price.cost.bytes <= target.cache_bytes ? kCacheSpeedup : 1);
  price.memory = price.cost.bytes / bandwidth;
  price.draws = draw_seconds(price.cost, target);
  price.memory_bound = price.memory > price.arithmetic;
  node.op->together ? price_links(node, target, price) : price_kernel(target, price);
  share_device(node, target, price);
  return price;
}

Price price(const Graph& graph, const Node& node, const Platform& platform) {
  Price price = tokamak::price(graph, node, platform.target);
  const auto& measured = platform.tuning.measured_seconds;
  if (measured.empty() || node.op->fusion == Fusion::kView) return price;
  KernelNode kernel = kernel_node(graph, node);
  if (auto at = measured.find(kernel_key(kernel.graph, kernel.node)); at != measured.end()) {
    bool is_low = is_low_precision(graph, node);
    price.seconds = is_low ? sustained_seconds(at->second, price.arithmetic, platform.target) : at->second;
    share_device(node, platform.target, price);
  }
  return price;
}

double units_taken(const Target& target, const std::string& axis) {
  auto at = target.axis_links.find(axis + std::string(kUnitsTaken));
  return at == target.axis_links.end() ? target.link_units : at->second[0];
}

double product_seconds(double flops, NumberFormat format, const Target& target) {
  return flops / product_rate(target, format);
}

double copies_seconds(double bytes, double kernels, const Target& target) {
  return bytes / target.memory_bandwidth + kernels * target.launch_seconds;
}

double transfer_seconds(double bytes, const std::string& axis, const Target& target) {
  LinkRate link = target.link(axis);
  return bytes / link.bandwidth + link.seconds;
}

}  // namespace tokamak
