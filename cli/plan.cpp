// `tokamak plan`: which layout trains a model on a cluster, how long and for how much, before anyone pays for it.
#include <fmt/core.h>

#include "advise/examples.h"
#include "cli/commands.h"
#include "config/cluster.h"
#include "plan/units.h"

namespace tokamak {
namespace {

struct PlanOptions {
  std::string cluster = "h200";
  bool clusters = false;
  bool examples = false;
};

void visit(FieldList& v, PlanOptions& c) {
  v("cluster", c.cluster, "what to train on: a name that --clusters lists, or a TOML file like those");
  v("clusters", c.clusters, "list the known clusters and where every figure comes from");
  v("examples", c.examples, "print numbers to know before one trains, with their formulas, and Megatron-LM's table");
}

std::string link_text(const LinkConfig& link) {
  return link.bandwidth.is_known() ? format_count(link.bandwidth.value, "B/s") : "none";
}

// Every figure with its source, but for those that are unknown.
void print_sources(ClusterConfig cluster) {
  constexpr std::string_view kValue = ".value";
  std::vector<Field> fields = fields_of(cluster);
  for (const Field& field : fields) {
    if (!field.key.ends_with(kValue)) continue;
    std::string key = field.key.substr(0, field.key.size() - kValue.size());
    double value = std::get<double>(get(field));
    if (value > 0)
      fmt::print("  {:<24} {:<14.6g} {}\n", key, value,
                 std::get<std::string>(get(*find_field(fields, key + ".source"))));
  }
}

void print_clusters() {
  for (const std::string& name : cluster_names()) {
    ClusterConfig cluster = read_cluster(name);
    fmt::print("{}: {}\n", name, cluster.summary);
    fmt::print("  {} GPU{} a node, {}; bf16 {}, memory {} at {}; links {} within a node, {} between\n",
               cluster.gpus_per_node, cluster.gpus_per_node == 1 ? "" : "s",
               cluster.nodes == 0 ? "any number of nodes"
                                  : fmt::format("{} node{}", cluster.nodes, cluster.nodes == 1 ? "" : "s"),
               format_count(cluster.gpu.half_flops.value, "FLOP/s"), format_bytes(cluster.gpu.memory_bytes.value),
               format_count(cluster.gpu.memory_bandwidth.value, "B/s"), link_text(cluster.within),
               link_text(cluster.between));
    print_sources(cluster);
    fmt::print("\n");
  }
}

int run_plan(const PlanOptions& options) {
  if (options.clusters) print_clusters();
  if (options.examples) fmt::print("{}", format_examples());
  return 0;
}

}  // namespace

Command plan_command() {
  return make_command<PlanOptions>("plan", "which layout trains a model on a cluster, how long, and for how much",
                                   "  tokamak plan --clusters\n  tokamak plan --examples", run_plan);
}

}  // namespace tokamak
