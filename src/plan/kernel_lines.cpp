#include "plan/kernel_lines.h"

#include "base/error.h"
#include "ops/matmul.h"
#include "plan/print_plan.h"
#include "plan/product_names.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tokamak {
namespace {

// "matmul[add gelu] mlp.c_fc"; of an optimizer, as Muon has them, "matmul update". Short enough for all tables.
std::string line_label(const ProductFinder& products, const Node& node) {
  constexpr size_t kLongest = 40, kLongestNamed = 34, kShortest = 12;
  std::optional<NamedProduct> product = products.find(node);
  if (!product)
    return kernel_label(node, kLongest) + (node.op == &op::matmul && node.phase == Phase::kUpdate ? " update" : "");
  std::string name = product_label(*product);
  size_t left = kLongestNamed - std::min(kLongestNamed, name.size() + 1);
  return kernel_label(node, std::max(left, kShortest)) + " " + name;
}

}  // namespace

void KernelLine::add(const KernelLine& other) {
  cost.flops += other.cost.flops;
  cost.bytes += other.cost.bytes;
  cost.link_bytes += other.cost.link_bytes;
  seconds += other.seconds;
  measured += other.measured;
  count += other.count;
}

std::vector<KernelLine> kernel_lines(const Plan& plan, std::span<const double> measured) {
  TOKAMAK_CHECK(measured.empty() || measured.size() == plan.launches.size(), "{} launches, {} of them measured",
                plan.launches.size(), measured.size());
  ProductFinder products(plan.graph);
  std::vector<KernelLine> lines;
  std::map<std::tuple<std::string, std::string, double, double>, size_t> known;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    std::string label = line_label(products, node), shape = to_string(plan.graph.type(node.outputs[0]));
    auto [at, is_new] = known.try_emplace({label, shape, launch.cost.flops, launch.cost.bytes}, lines.size());
    if (is_new) lines.push_back({.label = label, .shape = shape, .node = launch.node});
    KernelLine& line = lines[at->second];
    line.add(
        {.cost = launch.cost, .seconds = launch.seconds, .measured = measured.empty() ? 0 : measured[i], .count = 1});
    line.memory_bound = launch.memory_bound;
  }
  std::stable_sort(lines.begin(), lines.end(), [](const KernelLine& a, const KernelLine& b) {
    return std::max(a.seconds, a.measured) > std::max(b.seconds, b.measured);
  });
  return lines;
}

}  // namespace tokamak
