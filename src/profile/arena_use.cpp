#include "profile/arena_use.h"

#include "plan/print_plan.h"

#include <fmt/format.h>

namespace tokamak {

std::vector<int64_t> arena_use(const Plan& plan) {
  size_t nodes = plan.graph.nodes().size();
  std::vector<int64_t> use(nodes + 1, 0);  // changes at each node, first
  for (const Block& block : plan.blocks) {
    use[size_t(block.first)] += block.bytes;
    if (size_t behind = size_t(block.last) + 1; behind < nodes) use[behind] -= block.bytes;
  }
  for (size_t i = 1; i < nodes; ++i) use[i] += use[i - 1];
  use.resize(nodes);
  return use;
}

std::string block_label(const Plan& plan, const Block& block) {
  ValueId value = block.values.front();
  std::string type = to_string(plan.graph.type(value));
  for (const Result& result : plan.graph.results())
    if (result.value == value) return fmt::format("{} {}", result.name, type);
  int producer = plan.graph.producer(value);
  return producer < 0 ? type : fmt::format("{} {}", kernel_label(plan.graph.nodes()[size_t(producer)]), type);
}

}  // namespace tokamak
