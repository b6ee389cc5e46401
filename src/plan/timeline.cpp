#include "plan/timeline.h"

#include <algorithm>

namespace tokamak {
namespace {

bool is_collective(const Plan& plan, size_t launch) {
  return plan.graph.nodes()[size_t(plan.launches[launch].node)].op->together;
}

std::vector<Span> run(const Plan& plan, bool collectives_take_time) {
  std::vector<int> resources;
  for (const PlannedStream& stream : plan.streams) resources.push_back(stream.resource);
  StreamClock clock(resources);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    double seconds = collectives_take_time || !is_collective(plan, i) ? launch.seconds : 0;
    clock.add({launch.stream, seconds, launch.taken_share, launch.after});
  }
  return std::move(clock).run();
}

}  // namespace

std::vector<Span> simulate(const Plan& plan) { return run(plan, true); }

double seconds_without_collectives(const Plan& plan) { return end_of_timeline(run(plan, false)); }

double seconds_before(const Plan& plan, std::string_view axis) {
  std::vector<Span> timeline = simulate(plan);
  double before = end_of_timeline(timeline);
  for (size_t i = 0; i < timeline.size(); ++i) {
    const Node& node = plan.graph.nodes()[size_t(plan.launches[i].node)];
    if (node.op->together && node.attrs.get_string("axis") == axis) before = std::min(before, timeline[i].begin);
  }
  return before;
}

double end_of_timeline(const std::vector<Span>& timeline) {
  double end = 0;
  for (const Span& span : timeline) end = std::max(end, span.end);
  return end;
}

std::vector<std::vector<Span>> exposed_spans(const Plan& plan, const std::vector<Span>& timeline) {
  std::vector<Span> others;
  for (size_t i = 0; i < timeline.size(); ++i)
    if (!is_collective(plan, i)) others.push_back(timeline[i]);
  std::sort(others.begin(), others.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<std::vector<Span>> exposed(timeline.size());
  for (size_t i = 0; i < timeline.size(); ++i) {
    if (!is_collective(plan, i)) continue;
    double covered_to = timeline[i].begin;
    for (const Span& other : others) {
      if (other.begin >= timeline[i].end) break;
      if (other.begin > covered_to) exposed[i].push_back({covered_to, other.begin});
      covered_to = std::max(covered_to, other.end);
    }
    if (timeline[i].end > covered_to) exposed[i].push_back({covered_to, timeline[i].end});
  }
  return exposed;
}

std::vector<double> exposed_seconds(const Plan& plan, const std::vector<Span>& timeline) {
  std::vector<double> seconds;
  for (const std::vector<Span>& spans : exposed_spans(plan, timeline)) {
    double& sum = seconds.emplace_back(0);
    for (const Span& span : spans) sum += span.end - span.begin;
  }
  return seconds;
}

}  // namespace tokamak
