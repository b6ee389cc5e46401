#include "plan/plan.h"

#include "ops/row_block.h"
#include "plan/arena.h"
#include "plan/neighbours.h"
#include "plan/storage.h"
#include "plan/stream_order.h"
#include "plan/streams.h"
#include "plan/timeline.h"

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

void count_arguments(Plan& plan) {
  for (const Argument& argument : plan.graph.arguments()) {
    int64_t bytes = num_bytes(plan.graph.type(argument.value));
    switch (argument.kind) {
      case Argument::Kind::kInput: plan.input_bytes += bytes; break;
      case Argument::Kind::kParameter: plan.parameter_bytes += bytes; break;
      case Argument::Kind::kState: plan.state_bytes += bytes; break;
    }
  }
}

void price_launches(Plan& plan, const Platform& platform) {
  for (size_t n = 0; n < plan.graph.nodes().size(); ++n) {
    const Node& node = plan.graph.nodes()[n];
    if (node.op->fusion != Fusion::kView) plan.launches.push_back({price(plan.graph, node, platform), int(n)});
  }
}

void place_values(Plan& plan, const StreamAssignment& assignment) {
  StorageMap storage = map_storage(plan.graph, assignment);
  std::vector<std::vector<int>> rows = find_neighbours(plan.graph, storage);
  plan.blocks = std::move(storage.blocks);
  plan.copies = std::move(storage.copies);
  plan.arena_bytes = place_blocks_side_by_side(plan.blocks, rows);
  std::vector<int64_t> live = live_bytes(plan.blocks, int(plan.graph.nodes().size()));
  plan.live_bytes = *std::max_element(live.begin(), live.end());
  for (size_t value = 0; value < storage.block_of.size(); ++value) {
    int block = storage.block_of[value];
    int64_t begin = block < 0 ? 0 : plan.blocks[size_t(block)].offset;
    plan.locations.push_back({begin + storage.offset[value], storage.argument_of[value]});
  }
}

// Kernels of one stream share theirs.
void count_scratch(Plan& plan, const KernelSet& kernels) {
  std::vector<int64_t> most(plan.streams.size(), 0);
  for (const Launch& launch : plan.launches) {
    int64_t& bytes = most[size_t(launch.stream)];
    KernelNode kernel = kernel_node(plan.graph, plan.graph.nodes()[size_t(launch.node)]);
    bytes = std::max(bytes, kernels.scratch_bytes(kernel.graph, kernel.node));
  }
  plan.scratch_bytes = std::accumulate(most.begin(), most.end(), int64_t(0));
}

}  // namespace

Plan make_plan(Graph graph, const Platform& platform, int streams) {
  Plan plan;
  plan.graph = separate_updates(std::move(graph));
  price_launches(plan, platform);
  StreamChoice choice{.side = streams > 1, .communication = platform.target.streams > 1};
  StreamAssignment assignment = assign_streams(plan.graph, plan.launches, choice);
  place_values(plan, assignment);
  count_arguments(plan);
  order_streams(plan, assignment);
  verify_streams(plan);
  count_scratch(plan, *platform.kernels);
  plan.seconds = end_of_timeline(simulate(plan));
  return plan;
}

}  // namespace tokamak
