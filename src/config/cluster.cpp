#include "config/cluster.h"

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/file.h"
#include "config/assignment.h"
#include "config/foreign_values.h"
#include "config/gpus.h"
#include "config/toml.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

namespace tokamak {

std::span<const EmbeddedFile> embedded_clusters();

void visit(FieldList& v, LinkConfig& c) {
  v.section("bandwidth", c.bandwidth, "bytes/s that a GPU sends in a collective");
  v.section("latency", c.latency, "seconds that a collective of few bytes takes");
  v.section("hop", c.hop, "seconds that one more GPU or node adds to a round of a ring");
  v.section("sums", c.sums, "bytes/s of a tensor that switches add up (NVLS, SHARP)");
}

void visit(FieldList& v, FabricConfig& c) {
  v.section("leaf_ports", c.leaf_ports, "ports of a leaf switch to GPUs");
  v("rails", c.rails, "GPUs of a node have leaves of their own: those of one number share a leaf");
  v.section("switch_latency", c.switch_latency, "seconds that one more switch adds");
  v.section("spine_share", c.spine_share, "share of the bandwidth that flows over spines keep");
  v.section("pod_nodes", c.pod_nodes, "nodes among which links have their full bandwidth");
  v.section("oversubscription", c.oversubscription, "how many times a pod's way out a pod's GPUs could send");
  v("pat", c.pat, "gathers of one GPU a node can go by NCCL's parallel aggregated trees");
}

void visit(FieldList& v, FailureConfig& c) {
  v.section("mtbf", c.mtbf, "seconds that one GPU runs between failures that stop a run");
  v.section("restart", c.restart, "seconds from a failure to the next step");
  v.section("checkpoint", c.checkpoint, "seconds that a checkpoint holds up a run");
  v.section("storage", c.storage, "bytes/s that all GPUs together write to storage");
  v.section("repair", c.repair, "seconds that a failed node is away");
  v("spares", c.spares, "nodes that stand by for failed ones", at_least(0));
}

void visit(FieldList& v, ClusterConfig& c) {
  v("name", c.name, "what it is called");
  v("summary", c.summary, "one line on what it is");
  v("nodes", c.nodes, "nodes that there are; 0: as many as one wants", at_least(0));
  v("gpus_per_node", c.gpus_per_node, "GPUs of a node", at_least(1));
  v.section("gpu", c.gpu, "its GPUs");
  v.section("within", c.within, "links between the GPUs of a node");
  v.section("between", c.between, "links between nodes");
  v.section("node_power", c.node_power, "watts of a node that trains, GPUs and all");
  v.section("price", c.price, "dollars that a GPU costs an hour");
  v.section("fabric", c.fabric, "switches between nodes");
  v.section("failures", c.failures, "what stops a run on many GPUs");
}

namespace {

std::string name_of(const EmbeddedFile& file) { return std::filesystem::path(file.name).stem(); }

void require_figure(const Figure& figure, std::string_view key, std::string_view name) {
  if (figure.is_known()) return;
  user_error("[{}: {}] expected a figure above 0, got none; write {} = {{value = ..., source = \"...\"}}", name, key,
             key.substr(key.rfind('.') + 1));
}

// A figure in another unit is far off: 200 for 200 GB/s, or 20 for 20 microseconds.
void require_units(const Figure& figure, std::string_view key, std::string_view unit, double least, double most,
                   std::string_view name) {
  require_figure(figure, key, name);
  if (figure.value < least || figure.value > most)
    user_error("[{}: {}] expected {}, {:g} to {:g}, got {:g}; write it in that unit, as 200e9 or 20e-6", name, key,
               unit, least, most, figure.value);
}

void require_link(const LinkConfig& link, const std::string& key, std::string_view name) {
  require_units(link.bandwidth, key + ".bandwidth", "bytes/s", 1e6, 1e15, name);
  require_units(link.latency, key + ".latency", "seconds", 1e-9, 1, name);
  if (link.hop.is_known()) require_units(link.hop, key + ".hop", "seconds", 1e-9, 1, name);
  if (link.sums.is_known()) require_units(link.sums, key + ".sums", "bytes/s", 1e6, 1e15, name);
}

// Where they are said.
void check_fabric(const FabricConfig& fabric, std::string_view name) {
  auto check = [&](const Figure& figure, const char* key, const char* unit, double least, double most) {
    if (figure.is_known()) require_units(figure, key, unit, least, most, name);
  };
  check(fabric.leaf_ports, "fabric.leaf_ports", "ports", 1, 1e4);
  check(fabric.switch_latency, "fabric.switch_latency", "seconds", 1e-9, 1e-3);
  check(fabric.spine_share, "fabric.spine_share", "a share", 0.01, 1);
  check(fabric.pod_nodes, "fabric.pod_nodes", "nodes", 1, 1e6);
  check(fabric.oversubscription, "fabric.oversubscription", "a factor", 1, 1000);
}

// Where they are said.
void check_failures(const FailureConfig& failures, std::string_view name) {
  auto check = [&](const Figure& figure, const char* key, double least, double most) {
    if (figure.is_known()) require_units(figure, key, "seconds", least, most, name);
  };
  check(failures.mtbf, "failures.mtbf", 1e4, 1e12);
  check(failures.restart, "failures.restart", 1e-3, 1e6);
  check(failures.checkpoint, "failures.checkpoint", 1e-6, 1e6);
  check(failures.repair, "failures.repair", 1, 1e8);
  if (failures.spares > 0) require_figure(failures.repair, "failures.repair", name);
  if (failures.storage.is_known()) require_units(failures.storage, "failures.storage", "bytes/s", 1e6, 1e15, name);
}

void check(const ClusterConfig& cluster, const std::vector<Field>& fields, std::string_view name) {
  check_sources(fields, name);
  const GpuConfig& gpu = cluster.gpu;
  require_units(gpu.half_flops, "gpu.half_flops", "FLOP/s", 1e9, 1e18, name);
  require_units(gpu.fp32_flops, "gpu.fp32_flops", "FLOP/s", 1e9, 1e18, name);
  require_units(gpu.memory_bytes, "gpu.memory_bytes", "bytes", 1e7, 1e14, name);
  require_units(gpu.memory_bandwidth, "gpu.memory_bandwidth", "bytes/s", 1e6, 1e15, name);
  require_figure(gpu.multiprocessors, "gpu.multiprocessors", name);
  require_figure(gpu.compute_capability, "gpu.compute_capability", name);
  require_figure(gpu.l2_bytes, "gpu.l2_bytes", name);
  if (gpu.load_clock.is_known()) require_units(gpu.load_clock, "gpu.load_clock", "a share", 0.2, 1.5, name);
  check_fabric(cluster.fabric, name);
  check_failures(cluster.failures, name);
  require_units(cluster.node_power, "node_power", "watts", 30, 1e6, name);
  if (cluster.gpus_per_node > 1) require_link(cluster.within, "within", name);
  if (cluster.nodes != 1) require_link(cluster.between, "between", name);
}

}  // namespace

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_clusters()) names.push_back(name_of(file));
  return names;
}

ClusterConfig parse_cluster(std::string_view text, std::string_view name) {
  ClusterConfig cluster;
  FieldList list;
  list.config(cluster);
  std::vector<Field> fields = std::move(list).take();
  assign(fields, parse_toml(fields, text, name));
  check(cluster, fields, name);
  return cluster;
}

ClusterConfig read_cluster(const std::string& name_or_file) {
  for (const EmbeddedFile& file : embedded_clusters())
    if (name_of(file) == name_or_file) return parse_cluster(file.text, file.name);
  if (!name_or_file.ends_with(".toml"))
    user_error("[cluster] expected {}, a TOML file or here (this machine), got '{}'{}",
               fmt::join(cluster_names(), ", "), name_or_file, value_hint("cluster", name_or_file, cluster_names()));
  return parse_cluster(read_file(name_or_file), name_or_file);
}

std::optional<DevicePrice> find_price(std::string_view device) {
  std::optional<GpuConfig> gpu = find_gpu(device);
  if (!gpu) return {};
  for (const std::string& name : cluster_names())
    if (ClusterConfig cluster = read_cluster(name); cluster.gpu.name == gpu->name && cluster.price.is_known())
      return DevicePrice{cluster.price.value, name};
  return {};
}

void require_gpus(const ClusterConfig& cluster, int64_t gpus) {
  int64_t node = cluster.gpus_per_node, most = cluster.nodes * node;
  if (gpus < 1 || (cluster.nodes > 0 && gpus > most))
    user_error("[gpus] expected 1 to {} on {}, got {}{}", cluster.nodes > 0 ? std::to_string(most) : "any number",
               cluster.name, gpus, gpus < 1 ? "" : "; --cluster names another, or a file that says more nodes");
  if (gpus > node && gpus % node != 0)
    user_error("[gpus] expected whole nodes of {} GPUs on {}, got {} GPUs; {} would fit", node, cluster.name, gpus,
               gpus / node * node);
}

}  // namespace tokamak
