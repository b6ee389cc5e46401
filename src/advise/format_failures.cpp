#include "advise/format_failures.h"

#include "advise/day.h"
#include "advise/failures.h"
#include "model/model.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

struct Expected {
  PlannedGoodput goodput;
  TrainingCost cost;  // without failures
};

// Parameters are kept in f32, and of states what ranks have for themselves.
CheckpointBytes checkpoint_bytes(const TrainingRequest& request, const Estimate& estimate) {
  const MeshConfig& mesh = estimate.layout.mesh;
  double ranks = double(mesh.pipe * mesh.tensor) * (mesh.zero > 0 ? double(mesh.data * mesh.context) : 1);
  return {.gpu = estimate.memory.weights + estimate.memory.optimizer,
          .all = 4 * double(count_parameters(request.run.model)) + ranks * estimate.memory.optimizer};
}

// Nodes that stand by are paid for, too.
double with_spares(const TrainingRequest& request) {
  const ClusterConfig& cluster = request.cluster;
  return 1 + double(cluster.failures.spares * cluster.gpus_per_node) / double(request.gpus);
}

Expected expect(const TrainingPlan& plan) {
  const PlannedLayout& best = plan.layouts[0];
  CheckpointBytes bytes = checkpoint_bytes(plan.request, best.estimate);
  Expected expected{goodput(plan.request.cluster, plan.request.gpus, bytes),
                    cost_of(plan.request, best.step_seconds())};
  expected.cost.dollars *= with_spares(plan.request);
  return expected;
}

std::string short_time(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} seconds", seconds) : duration_text(seconds);
}

}  // namespace

std::string failure_lines(const TrainingPlan& plan) {
  auto [g, cost] = expect(plan);
  if (!expects_failures(g, cost.seconds)) return "";
  std::vector<double> shares = percentages(std::array{g.share, g.restarting, g.repeated, g.checkpointing, g.waiting});
  std::string waits, writes;
  if (g.by.repair.is_known())
    waits = fmt::format(", {:.1f}% to waits for nodes, of which {} stand by", shares[4], g.by.spares);
  if (g.writing > 0) writes = fmt::format("           storage has a checkpoint after {}\n", short_time(g.writing));
  return fmt::format(
      "failures   one in {} on {} GPUs, {:.1f} a day; with a checkpoint each {} training keeps {:.1f}% of the time:\n"
      "           {:.1f}% goes to restarts, {:.1f}% to work done again, {:.1f}% to checkpoints{}; {} and {} in all\n{}",
      short_time(g.between), plan.request.gpus, kDay / g.between, short_time(g.interval), shares[0], shares[1],
      shares[2], shares[3], waits, duration_text(cost.seconds / g.share), money_text(cost.dollars / g.share), writes);
}

Json failures_json(const TrainingPlan& plan) {
  auto [g, cost] = expect(plan);
  auto figure = [](const Figure& one) { return Json{{"value", one.value}, {"source", one.source}}; };
  Json json = {
      {"expected", cost.seconds / g.share / g.between},
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
  if (g.by.storage.is_known()) json["seconds_writing"] = g.writing, json["by"]["storage"] = figure(g.by.storage);
  if (g.by.repair.is_known()) {
    json["share_waiting"] = g.waiting;
    json["by"]["repair"] = figure(g.by.repair);
    json["by"]["spares"] = g.by.spares;
  }
  return json;
}

}  // namespace tokamak
