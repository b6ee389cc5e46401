#include "advise/format_failures.h"

#include "advise/day.h"
#include "advise/failures.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

struct Expected {
  Goodput goodput;
  TrainingCost cost;  // without failures
};

Expected expect(const TrainingPlan& plan) {
  const PlannedLayout& best = plan.layouts[0];
  const MemoryByKind& memory = best.estimate.memory;
  return {goodput(plan.request.cluster, plan.request.gpus, memory.weights + memory.optimizer),
          cost_of(plan.request, best.step_seconds())};
}

std::string short_time(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} seconds", seconds) : duration_text(seconds);
}

}  // namespace

std::string failure_lines(const TrainingPlan& plan) {
  auto [g, cost] = expect(plan);
  if (!expects_failures(g, cost.seconds)) return "";
  std::vector<double> shares = percentages(std::array{g.share, g.restarting, g.repeated, g.checkpointing});
  return fmt::format(
      "failures   one in {} on {} GPUs, {:.1f} a day; with a checkpoint each {} training keeps {:.1f}% of the time:\n"
      "           {:.1f}% goes to restarts, {:.1f}% to work done again, {:.1f}% to checkpoints; {} and {} in all\n",
      short_time(g.between), plan.request.gpus, kDay / g.between, short_time(g.interval), shares[0], shares[1],
      shares[2], shares[3], duration_text(cost.seconds / g.share), money_text(cost.dollars / g.share));
}

Json failures_json(const TrainingPlan& plan) {
  auto [g, cost] = expect(plan);
  auto figure = [](const Figure& one) { return Json{{"value", one.value}, {"source", one.source}}; };
  return {{"expected", cost.seconds / g.share / g.between},
          {"seconds_between", g.between},
          {"checkpoint_interval", g.interval},
          {"share_kept", g.share},
          {"share_restarting", g.restarting},
          {"share_repeated", g.repeated},
          {"share_checkpointing", g.checkpointing},
          {"days", cost.seconds / g.share / kDay},
          {"dollars", cost.dollars > 0 ? Json(cost.dollars / g.share) : Json()},
          {"by",
           {{"mtbf", figure(g.by.mtbf)}, {"restart", figure(g.by.restart)}, {"checkpoint", figure(g.by.checkpoint)}}}};
}

}  // namespace tokamak
