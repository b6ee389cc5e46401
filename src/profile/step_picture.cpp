#include "profile/step_picture.h"

#include "plan/print_plan.h"
#include "plan/units.h"
#include "profile/arena_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tokamak {
namespace {

// Of each plan that a step runs.
using Finders = std::map<const Plan*, ProductFinder>;

std::string work_title(const RecordedWork& work, Finders& finders) {
  switch (work.kind) {
    case Work::Kind::kLaunch: {
      const Node& node = work.node();
      const ProductFinder& finder = finders.try_emplace(work.plan, work.plan->graph).first->second;
      return kernel_label(node) + product_of(finder, node) +
             (node.outputs.empty() ? "" : " " + to_string(work.plan->graph.type(node.outputs[0])));
    }
    case Work::Kind::kTransfer: return "transfer " + work.name;
    default: return work.name.empty() ? "copy" : "input " + work.name;
  }
}

// Where the last step begins among the works.
size_t begin_of_last_step(const StepProfile& profile) {
  std::vector<size_t> runs;
  for (size_t i = 0; i < profile.works.size(); ++i)
    if (profile.works[i].kind == Work::Kind::kRun) runs.push_back(i);
  size_t of_a_step = runs.size() / size_t(std::max<int64_t>(profile.steps, 1));
  return runs.empty() ? profile.works.size() : runs[runs.size() - of_a_step];
}

// By node: when its launch ran in the last run of the plan; nodes without one when the launch before ended.
std::vector<Span> node_times(const Plan& plan, const StepProfile& profile) {
  std::vector<Span> times(plan.graph.nodes().size(), {-1, -1});
  double run_begin = 0;
  for (const RecordedWork& work : profile.works) {
    if (work.plan != &plan) continue;
    if (work.kind == Work::Kind::kRun) run_begin = work.begin;
    if (work.kind == Work::Kind::kLaunch)
      times[size_t(plan.launches[size_t(work.index)].node)] = {work.begin - run_begin, work.end - run_begin};
  }
  double before = 0;
  for (Span& time : times) {
    if (time.end < 0) time = {before, before};
    before = std::max(before, time.end);
  }
  return times;
}

// A block that holds a product's output says which product.
std::string named_block(const Plan& plan, const Block& block, const ProductFinder& finder) {
  constexpr std::string_view kProduct = "matmul";
  std::string label = block_label(plan, block);
  if (label.starts_with(kProduct) && size_t(block.first) < plan.graph.nodes().size())
    label.insert(kProduct.size(), product_of(finder, plan.graph.nodes()[size_t(block.first)]));
  return label;
}

}  // namespace

std::string product_of(const ProductFinder& finder, const Node& node) {
  std::optional<NamedProduct> product = finder.find(node);
  return product ? " " + product_label(*product) : "";
}

StepTimeline step_timeline(const StepProfile& profile) {
  StepTimeline timeline;
  size_t first = begin_of_last_step(profile);
  if (first == profile.works.size()) return timeline;
  double begin = profile.works[first].begin;
  Finders finders;
  for (size_t i = first; i < profile.works.size(); ++i) {
    const RecordedWork& work = profile.works[i];
    if (work.kind == Work::Kind::kRun) continue;
    auto lane = size_t(work.stream);
    if (lane >= timeline.lanes.size()) timeline.lanes.resize(lane + 1), timeline.streams.resize(lane + 1);
    timeline.streams[lane] =
        work.plan && lane < work.plan->streams.size() ? work.plan->streams[lane].name : "transfers";
    std::vector<ActivitySpan> spans;
    add_spans(work, spans);
    for (const ActivitySpan& span : spans) {
      TimelineBar bar{span.begin - begin, span.end - begin, std::string(to_string(span.work)),
                      work_title(work, finders)};
      bar.title += fmt::format(", {:.3f} ms at {:.3f}", (span.end - span.begin) * 1e3, bar.begin * 1e3);
      timeline.seconds = std::max(timeline.seconds, bar.end);
      timeline.lanes[lane].bars.push_back(std::move(bar));
    }
  }
  return timeline;
}

MemoryPicture memory_picture(const Plan& plan, const StepProfile& profile) {
  MemoryPicture picture{.program = plan.graph.name(), .arena_bytes = plan.arena_bytes};
  std::vector<int64_t> use = arena_use(plan);
  if (use.empty()) return picture;
  auto peak = std::max_element(use.begin(), use.end());
  auto peak_node = int(peak - use.begin());
  std::vector<Span> times = node_times(plan, profile);
  picture.peak_bytes = *peak;
  picture.peak_seconds = times[size_t(peak_node)].begin;
  ProductFinder finder(plan.graph);
  const Node& at_peak = plan.graph.nodes()[size_t(peak_node)];
  picture.peak_kernel = kernel_label(at_peak) + product_of(finder, at_peak);
  picture.seconds = times.back().end;
  for (const Span& time : times) picture.seconds = std::max(picture.seconds, time.end);
  for (const Block& block : plan.blocks) {
    bool to_end = size_t(block.last) >= times.size();
    picture.blocks.push_back(
        {.label = fmt::format("{}, {}", named_block(plan, block, finder), format_bytes(double(block.bytes))),
         .begin = times[size_t(block.first)].begin,
         .end = to_end ? picture.seconds : times[size_t(block.last)].end,
         .offset = block.offset,
         .bytes = block.bytes,
         .at_peak = block.first <= peak_node && peak_node <= block.last});
  }
  return picture;
}

}  // namespace tokamak
