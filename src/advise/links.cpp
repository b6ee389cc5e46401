#include "advise/links.h"

#include "cost/link_ways.h"
#include "passes/step_mesh.h"

#include <algorithm>

namespace tokamak {
namespace {

// NVIDIA/nccl, src/graph/tuning.cc since 2.18, in seconds: of its protocols "Simple", and LL128 for what is small.
constexpr double kRingWithin = 3.4e-6, kRingWithinLow = 1.9e-6;   // a step of a ring by NVLink
constexpr double kRingBetween = 14e-6, kRingBetweenLow = 4e-6;    // and over the network
constexpr double kTreeBetween = 14e-6, kTreeBetweenLow = 8.5e-6;  // a level of a tree
constexpr double kTreeShare = 0.9, kLowShare = 0.92;              // of a ring's bandwidth
// The same at 5067397c of June 2026: parallel aggregated trees (PAT, arXiv 2506.20252), for one GPU a node.
constexpr double kParallelLevel = kTreeBetween / 3.5, kParallelRank = 2.8e-6, kParallelShare = 0.75;

double known_or(const Figure& figure, double usual) { return figure.is_known() ? figure.value : usual; }

// The nodes of an axis, as far apart as its ranks are, and its ranks on each.
struct Nodes {
  int64_t count = 1, apart = 1, ranks = 1;
};
Nodes nodes_of(const ClusterConfig& cluster, int64_t stride, int64_t size) {
  int64_t node = cluster.gpus_per_node;
  int64_t ranks = std::max<int64_t>(node / stride, 1);
  return {(size + ranks - 1) / ranks, std::max<int64_t>(stride / node, 1), ranks};
}

// Nodes that are one switch apart.
double leaf_nodes(const ClusterConfig& cluster) {
  double ports = known_or(cluster.fabric.leaf_ports, 1e9);
  return cluster.fabric.rails ? ports : std::max(ports / double(cluster.gpus_per_node), 1.0);
}

double pod_nodes(const ClusterConfig& cluster) { return known_or(cluster.fabric.pod_nodes, 1e9); }

// Seconds that switches add between nodes so far apart: a spine and another leaf, and between pods two more. A node has
// neighbours that far away in another leaf or pod as often as they are far.
double switch_seconds(const ClusterConfig& cluster, double apart) {
  double levels = std::min(apart / leaf_nodes(cluster), 1.0) + std::min(apart / pod_nodes(cluster), 1.0);
  return 2 * levels * cluster.fabric.switch_latency.value;
}

// What is left of a way out: of flows over spines, and of a pod's way out for the rings that cross it. Each ring, or
// each way out of a node that one takes, does so once.
double fabric_share(const ClusterConfig& cluster, int64_t stride, const Nodes& nodes) {
  const FabricConfig& fabric = cluster.fabric;
  auto span = double(nodes.count * nodes.apart);
  double share = span > leaf_nodes(cluster) ? known_or(fabric.spine_share, 1) : 1;
  if (span <= pod_nodes(cluster)) return share;
  auto node = double(cluster.gpus_per_node);
  double crossing = std::max(std::min(double(stride), pod_nodes(cluster) * node), node);
  return share * std::min(1.0, pod_nodes(cluster) * node / known_or(fabric.oversubscription, 1) / crossing);
}

// Beyond two nodes: so many steps of a ring more, each over all ranks of a node, and levels of a tree.
void add_nodes(const ClusterConfig& cluster, const Nodes& nodes, Link& link) {
  double within = known_or(cluster.within.hop, kRingWithin), between = known_or(cluster.between.hop, kRingBetween);
  double far = switch_seconds(cluster, double(nodes.apart));
  auto more = double(nodes.count - 2), others = double(nodes.ranks - 1);
  link.round = more * (between + far + others * within);
  link.round_low =
      more * (between * kRingBetweenLow / kRingBetween + far + others * within * kRingWithinLow / kRingWithin);
  for (auto apart = 2.0 * double(nodes.apart); apart < double(nodes.count * nodes.apart); apart *= 2) {
    double level = between * kTreeBetween / kRingBetween, low = between * kTreeBetweenLow / kRingBetween;
    link.tree += 2 * (level + switch_seconds(cluster, apart));
    link.tree_low += 2 * (low + switch_seconds(cluster, apart));
    link.parallel_trees += between * kParallelLevel / kRingBetween + switch_seconds(cluster, apart);
  }
  link.parallel_trees = cluster.fabric.pat && nodes.ranks == 1 ? link.parallel_trees + more * kParallelRank : 0;
}

// A rank sends a tensor once to switches, where around a ring it would send 2 (n - 1) / n of it.
double of_ring(const Figure& sums, int64_t size) { return sums.value * 2 * double(size - 1) / double(size); }

// What a GPU sends to switches between nodes its node has added up, half as fast as its links where its own switches do
// not (NVIDIA/nccl#320).
void add_sums(const ClusterConfig& cluster, int64_t stride, const Nodes& nodes, int64_t size, Link& link) {
  if (!cluster.between.sums.is_known()) return;
  double out = cluster.between.sums.value * double(nodes.ranks) * fabric_share(cluster, stride, nodes);
  double node = cluster.within.sums.is_known() ? cluster.within.sums.value : cluster.within.bandwidth.value / 2;
  if (nodes.ranks > 1) out = std::min(out, node);
  link.sums = of_ring({out, ""}, size);
  link.switches = switch_seconds(cluster, double(nodes.count * nodes.apart));
}

// Of what a collective takes from kernels beside it in a node, over an axis' link. NCCL takes as many multiprocessors
// as its links need, and each does nothing else meanwhile: 2 for 12 to 24 GB/s, 16 for 190 (NVIDIA/nccl#689), 24 in a
// node of A100 (NVIDIA/nccl-tests#100). Kernels of a block for each tile lose as many. Since compute capability 9
// libraries' products begin as many blocks as there are multiprocessors, each with its tiles, so that however few are
// taken, as many blocks wait (pytorch/pytorch#147966): these take as much over any link.
double share_of_units(const ClusterConfig& cluster, const Link& link) {
  if (cluster.gpu.compute_capability.value >= 9 || !cluster.within.bandwidth.is_known()) return 1;
  return std::min(1.0, link.bandwidth / cluster.within.bandwidth.value);
}

// A transfer's, or that of a collective of so many rounds.
double seconds(const Link& link, double sent, double share, double more) {
  return sent / (share * link.bandwidth) + link.latency + more;
}

void add_ways(Target& target, const std::string& axis, const Link& link) {
  auto add = [&](std::string_view way, double share, double more) {
    target.axis_links[axis + std::string(way)] = {share * link.bandwidth, link.latency + more};
  };
  if (link.sums > 0) target.axis_links[axis + std::string(kSwitchWay)] = {link.sums, link.latency + link.switches};
  add(kSumWay, 1, 2 * link.round);
  if (!link.grows()) return;
  if (link.parallel_trees > 0) add(kParallelTreesWay, kParallelShare, link.parallel_trees);
  add("", 1, link.round);
  add(kRingLowWay, kLowShare, link.round_low);
  add(kSumLowWay, kLowShare, 2 * link.round_low);
  add(kTreeWay, kTreeShare, link.tree);
  add(kTreeLowWay, kTreeShare * kLowShare, link.tree_low);
}

}  // namespace

Link axis_link(const ClusterConfig& cluster, int64_t stride, int64_t size) {
  if (stride * size <= cluster.gpus_per_node) {
    Link link{cluster.within.bandwidth.value, cluster.within.latency.value};
    link.sums = of_ring(cluster.within.sums, size);
    return link;
  }
  Nodes nodes = nodes_of(cluster, stride, size);
  double out = cluster.between.bandwidth.value * double(nodes.ranks) * fabric_share(cluster, stride, nodes);
  if (nodes.ranks > 1) out = std::min(out, cluster.within.bandwidth.value);
  Link link{out, cluster.between.latency.value};
  if (nodes.count > 2) add_nodes(cluster, nodes, link);
  add_sums(cluster, stride, nodes, size, link);
  return link;
}

// Stages of a pipeline send to their neighbours, however many there are.
Platform with_links(Platform platform, const ClusterConfig& cluster, const MeshConfig& config) {
  Mesh mesh = step_mesh(config);
  int64_t stride = 1;
  for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); stride *= axis->size, ++axis) {
    if (axis->size == 1) continue;
    Link link = axis_link(cluster, stride, axis->size);
    platform.target.axis_links[axis->name] = {link.bandwidth, link.latency};
    double units = share_of_units(cluster, link) * platform.target.link_units;
    if (units < platform.target.link_units)
      platform.target.axis_links[axis->name + std::string(kUnitsTaken)] = {units, 0};
    if ((link.grows() || link.sums > 0) && axis->name != kPipeAxis) add_ways(platform.target, axis->name, link);
  }
  return platform;
}

double all_gather_seconds(const Link& link, int64_t size, double bytes) {
  if (size == 1) return 0;
  double sent = bytes * double(size - 1) / double(size);
  double ring =
      std::min(seconds(link, sent, 1, link.round), seconds(link, sent, link.grows() ? kLowShare : 1, link.round_low));
  return link.parallel_trees > 0 ? std::min(ring, seconds(link, sent, kParallelShare, link.parallel_trees)) : ring;
}

double all_reduce_seconds(const Link& link, int64_t size, double bytes) {
  if (size == 1) return 0;
  double sent = 2 * bytes * double(size - 1) / double(size);
  double ring = seconds(link, sent, 1, 2 * link.round);
  if (link.sums > 0) ring = std::min(ring, sent / link.sums + link.latency + link.switches);
  if (!link.grows()) return ring;
  return std::min({ring, seconds(link, sent, kLowShare, 2 * link.round_low), seconds(link, sent, kTreeShare, link.tree),
                   seconds(link, sent, kTreeShare * kLowShare, link.tree_low)});
}

double send_seconds(const Link& link, double bytes) { return bytes / link.bandwidth + link.latency; }

}  // namespace tokamak
