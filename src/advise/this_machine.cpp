#include "advise/this_machine.h"

#include "base/error.h"
#include "config/cluster.h"
#include "config/gpus.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

GpuConfig described(const MeasuredGpu& gpu) {
  std::optional<GpuConfig> kind = find_gpu(gpu.name);
  if (!kind)
    user_error("[cluster] expected a known GPU in this machine, got '{}'; describe it in a TOML file (docs/plan.md)",
               gpu.name);
  GpuConfig own = *kind;
  const std::string source = "CUDA on this machine";
  own.memory_bytes = {double(gpu.free_bytes), "free on this machine now"};
  own.memory_bandwidth = {gpu.memory_bandwidth, "a plain copy on this machine, at its usual share"};
  own.multiprocessors = {double(gpu.multiprocessors), source};
  own.compute_capability = {gpu.major + gpu.minor / 10.0, source};
  own.l2_bytes = {double(gpu.l2_bytes), source};
  own.shared_bytes = {double(gpu.shared_bytes), source};
  return own;
}

}  // namespace

ClusterConfig this_machine(const MeasuredGpu& gpu, int64_t count) {
  ClusterConfig machine{.name = "this machine", .nodes = 1};
  machine.gpu = described(gpu);
  machine.gpus_per_node = 1;
  machine.summary = fmt::format("{} as measured now; links of its kind are not known", gpu.name);
  for (const std::string& name : cluster_names()) {
    ClusterConfig known = read_cluster(name);
    if (known.gpu.name != machine.gpu.name || !known.within.bandwidth.is_known()) continue;
    machine.gpus_per_node = count;
    machine.within = known.within;
    machine.summary = fmt::format("{} x {} as measured now, links as of {}", count, gpu.name, name);
    break;
  }
  machine.node_power = {machine.gpu.power.value * double(machine.gpus_per_node),
                        "the GPUs alone: " + machine.gpu.power.source};
  return machine;
}

}  // namespace tokamak
