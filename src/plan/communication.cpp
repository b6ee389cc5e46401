#include "plan/communication.h"

#include <fmt/core.h>

#include <map>

namespace tokamak {

void Communication::add(const Communication& other) {
  collectives += other.collectives;
  tensors += other.tensors;
  link_bytes += other.link_bytes;
  seconds += other.seconds;
  exposed += other.exposed;
}

std::vector<Communication> sum_communication(const Plan& plan, const std::vector<Span>& timeline) {
  std::vector<double> exposed = exposed_seconds(plan, timeline);
  std::map<std::pair<std::string, std::string>, Communication> sums;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (!node.op->together) continue;
    Communication one{.op = std::string(node.op->name),
                      .axis = node.attrs.get_string("axis"),
                      .size = node.attrs.get_int("size"),
                      .collectives = 1,
                      .tensors = int(node.inputs.size()),
                      .link_bytes = launch.cost.link_bytes,
                      .seconds = timeline[i].end - timeline[i].begin,
                      .exposed = exposed[i]};
    auto [sum, is_first] = sums.try_emplace({one.op, one.axis}, one);
    if (!is_first) sum->second.add(one);
  }
  std::vector<Communication> list;
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  return list;
}

std::string axis_label(const Communication& communication) {
  return fmt::format("{}:{}", communication.axis, communication.size);
}

}  // namespace tokamak
