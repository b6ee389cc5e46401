#include "run/reference_nodes.h"

#include "base/error.h"
#include "exec/collective_kernel.h"
#include "ops/row_block.h"
#include "plan/memory.h"  // value_name
#include "plan/print_plan.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr size_t kNamed = 8;  // of a list

}  // namespace

std::vector<ReferenceNode> find_reference_nodes(const CompiledStep& step, const KernelSet& kernels) {
  std::vector<ReferenceNode> nodes;
  for (const CompiledGraph& program : step.programs) {
    const Graph& graph = program.plan.graph;
    for (const Launch& launch : program.plan.launches) {
      const Node& node = graph.nodes()[size_t(launch.node)];
      KernelNode kernel = kernel_node(graph, node);
      if (!is_of_ranks(kernel.node) && !kernels.has_kernel(kernel.graph, kernel.node))
        nodes.push_back({&graph, launch.node});
    }
  }
  return nodes;
}

std::string list_kernels(const std::vector<ReferenceNode>& nodes) {
  std::vector<std::pair<std::string, int>> counts;  // by name, in order
  for (const ReferenceNode& at : nodes) {
    std::string name = kernel_label(at.graph->nodes()[size_t(at.node)]);
    auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == name; });
    if (known == counts.end())
      counts.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::string list;
  for (size_t i = 0; i < counts.size() && i < kNamed; ++i)
    list += fmt::format("{}{} x{}", i ? ", " : "", counts[i].first, counts[i].second);
  if (counts.size() > kNamed) list += fmt::format(", and {} more", counts.size() - kNamed);
  return list;
}

std::string reference_warning(const std::vector<ReferenceNode>& nodes) {
  if (nodes.empty()) return {};
  return fmt::format(
      "warning: there is no kernel here for {}: they run on the host by reference, which is slow; compile.strict "
      "refuses such a run",
      list_kernels(nodes));
}

void refuse_reference_nodes(const std::vector<ReferenceNode>& nodes) {
  if (nodes.empty()) return;
  std::string list;
  for (size_t i = 0; i < nodes.size() && i < kNamed; ++i) {
    const auto& [graph, n] = nodes[i];
    const Node& node = graph->nodes()[size_t(n)];
    list += fmt::format("{}{} (node {} of '{}')", i ? ", " : "", value_name(*graph, node.outputs[0]), n, graph->name());
  }
  if (nodes.size() > kNamed) list += fmt::format(", and {} more", nodes.size() - kNamed);
  user_error(
      "[compile] expected a kernel for every node, as compile.strict asks for, got none for {}; choose another "
      "--compile.precision or another shape of the model, or leave out --compile.strict, and they run on the host, "
      "slowly",
      list);
}

}  // namespace tokamak
