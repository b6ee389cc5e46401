#include "advise/search.h"

#include "base/divide.h"
#include "base/error.h"
#include "model/model.h"
#include "model/utilization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace tokamak {
namespace {

std::vector<ParallelLayout> allowed_layouts(const TrainingRequest& request) {
  std::vector<ParallelLayout> layouts =
      all_layouts(request.model, request.gpus, request.cluster.gpus_per_node, request.sequences, request.schedules);
  std::erase_if(layouts, [&](const ParallelLayout& layout) { return !request.allows(layout); });
  return layouts;
}

auto mesh_key(const ParallelLayout& layout) {
  const MeshConfig& m = layout.mesh;
  return std::tuple(m.pipe, m.data, m.context, m.tensor, m.zero, m.pipe > 1 ? m.schedule : "");
}

struct Candidate {
  ParallelLayout layout;
  double least = 0;  // seconds: it takes no less
  size_t place = 0;  // among all that are allowed
};

// All that are allowed, those that may be fast first: most of the others need not be estimated.
std::vector<Candidate> candidates(const TrainingRequest& request) {
  constexpr double kRounding = 1 - 1e-9;
  std::map<std::tuple<int64_t, int64_t, int64_t>, double> blocks;
  std::vector<Candidate> list;
  for (ParallelLayout& layout : allowed_layouts(request)) {
    auto [block, is_new] = blocks.try_emplace({layout.mesh.tensor, layout.mesh.context, layout.micro_batch});
    if (is_new) block->second = least_block_seconds(request.model, layout, request.cluster);
    double of_slowest = double(ceil_div(request.model.layers, layout.mesh.pipe) * layout.micro_batches);
    list.push_back({std::move(layout), kRounding * of_slowest * block->second, list.size()});
  }
  std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) { return a.least < b.least; });
  return list;
}

// Tokens/s; 0 where nothing fits.
double best_rate(const TrainingRequest& request) {
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates(request)) {
    if (candidate.least > least) break;
    Estimate one = estimate(request.model, candidate.layout, request.cluster, least);
    if (fits(one, request.cluster)) least = std::min(least, one.time.total());
  }
  return tokens_of_step(request) / least;
}

Change change_of(const std::string& what, const TrainingRequest& changed, double rate) {
  double other = best_rate(changed);
  return {what, other > 0, other / rate - 1};
}

constexpr std::pair<const char*, int64_t MeshConfig::*> kAxes[] = {
    {"pipe", &MeshConfig::pipe}, {"context", &MeshConfig::context}, {"tensor", &MeshConfig::tensor}};

// Twice and half of each axis, with what data has then, and the best of all else.
void add_axis_changes(const TrainingRequest& request, const Estimate& best, std::vector<Change>& changes) {
  double rate = tokens_of_step(request) / best.time.total();
  for (auto [name, axis] : kAxes)
    for (int64_t size : {best.layout.mesh.*axis * 2, best.layout.mesh.*axis / 2}) {
      MeshConfig wanted = best.layout.mesh;
      wanted.*axis = size;
      TrainingRequest changed = request;
      changed.allows = [wanted](const ParallelLayout& layout) {
        return std::all_of(std::begin(kAxes), std::end(kAxes),
                           [&](auto one) { return layout.mesh.*one.second == wanted.*one.second; });
      };
      if (size > 0 && !allowed_layouts(changed).empty())
        changes.push_back(change_of(fmt::format("{} {}", name, size), changed, rate));
    }
}

// The other schedules on the same mesh, each with its best micro-batch.
void add_schedule_changes(const TrainingRequest& request, const Estimate& best, std::vector<Change>& changes) {
  const MeshConfig own = best.layout.mesh;
  double rate = tokens_of_step(request) / best.time.total();
  for (const ScheduleChoice& choice : usual_schedules()) {
    if (choice.schedule == own.schedule) continue;
    TrainingRequest changed = request;
    changed.schedules = {choice};
    changed.allows = [own](const ParallelLayout& layout) {
      const MeshConfig& m = layout.mesh;
      return m.pipe == own.pipe && m.data == own.data && m.context == own.context && m.zero == own.zero;
    };
    if (!allowed_layouts(changed).empty()) changes.push_back(change_of("schedule " + choice.schedule, changed, rate));
  }
}

void scale_links(ClusterConfig& cluster, double factor) {
  cluster.within.bandwidth.value *= factor;
  cluster.between.bandwidth.value *= factor;
}

struct Knob {
  const char* what;
  void (*scale)(ClusterConfig&, double factor);
};
constexpr const char *kMatmuls = "FLOP/s", *kBandwidth = "the memory's bandwidth", *kMemory = "memory a GPU",
                     *kLinks = "the links' bandwidth";
constexpr Knob kKnobs[] = {
    {kMatmuls, [](ClusterConfig& c, double f) { c.gpu.half_flops.value *= f; }},
    {kBandwidth, [](ClusterConfig& c, double f) { c.gpu.memory_bandwidth.value *= f; }},
    {kLinks, scale_links},
    {kMemory, [](ClusterConfig& c, double f) { c.gpu.memory_bytes.value *= f; }},
};

}  // namespace

double tokens_of_step(const TrainingRequest& request) {
  return double(request.sequences) * double(request.model.context);
}

double steps_of(const TrainingRequest& request) {
  return std::max(std::ceil(request.tokens / tokens_of_step(request)), 1.0);
}

bool fits(const Estimate& estimate, const ClusterConfig& cluster) {
  return estimate.memory.total() <= usable_bytes(cluster, estimate.layout.mesh);
}

std::vector<Estimate> search_layouts(const TrainingRequest& request) {
  std::map<decltype(mesh_key({})), std::pair<Estimate, size_t>> best;  // with its place among all
  for (const Candidate& candidate : candidates(request)) {
    auto at = best.find(mesh_key(candidate.layout));
    double least = at == best.end() ? std::numeric_limits<double>::infinity() : at->second.first.time.total();
    if (candidate.least > least) continue;
    Estimate one = estimate(request.model, candidate.layout, request.cluster, least);
    if (!fits(one, request.cluster)) continue;
    bool is_first = at == best.end() || candidate.place < at->second.second;
    if (one.time.total() < least || (one.time.total() == least && is_first))
      best.insert_or_assign(mesh_key(candidate.layout), std::pair(std::move(one), candidate.place));
  }
  std::vector<Estimate> list;
  for (auto& [key, one] : best) list.push_back(std::move(one.first));
  std::stable_sort(list.begin(), list.end(),
                   [](const Estimate& a, const Estimate& b) { return a.time.total() < b.time.total(); });
  return list;
}

Estimate smallest_layout(const TrainingRequest& request) {
  std::vector<Estimate> all;
  for (const ParallelLayout& layout : allowed_layouts(request))
    all.push_back(estimate(request.model, layout, request.cluster, 0));
  if (all.empty())
    user_error(
        "[plan] expected a layout of {0} GPUs that the model allows, got none: ranks of all axes are {0}, those of "
        "data divide the {1} sequences of a step and train.batch, those of tensor the {2} heads; change --gpus, "
        "--train.batch, --train.total_batch or --mesh.*",
        request.gpus, request.sequences, request.model.heads);
  return *std::min_element(all.begin(), all.end(),
                           [](const Estimate& a, const Estimate& b) { return a.memory.total() < b.memory.total(); });
}

TrainingCost cost_of(const TrainingRequest& request, double step_seconds) {
  const ClusterConfig& cluster = request.cluster;
  constexpr double kHour = 3600;
  TrainingCost cost;
  cost.tokens_per_second = tokens_of_step(request) / step_seconds;
  cost.seconds = request.tokens / cost.tokens_per_second;
  Utilization used = utilization(flops_per_token(request.model), cost.tokens_per_second,
                                 cluster.gpu.half_flops.value * double(request.gpus));
  cost.mfu_full = used.full;
  cost.mfu_causal = used.causal;
  double nodes = double(request.gpus) / double(cluster.gpus_per_node);
  cost.kilowatt_hours = cluster.node_power.value * 1e-3 * nodes * cost.seconds / kHour;
  cost.dollars = cluster.price.value * double(request.gpus) * cost.seconds / kHour;
  return cost;
}

std::vector<Change> cluster_changes(const TrainingRequest& request, const Estimate& best) {
  double rate = tokens_of_step(request) / best.time.total();
  std::vector<Change> changes;
  for (const Knob& knob : kKnobs)
    for (double factor : {2.0, 0.5}) {
      TrainingRequest changed = request;
      knob.scale(changed.cluster, factor);
      changes.push_back(change_of(std::string(factor > 1 ? "twice " : "half ") + knob.what, changed, rate));
    }
  for (int64_t gpus : {request.gpus * 2, request.gpus / 2}) {
    TrainingRequest changed = request;
    changed.gpus = gpus;
    changed.allows = [](const ParallelLayout&) { return true; };
    if (gpus > changed.cluster.gpus_per_node * std::max<int64_t>(changed.cluster.nodes, 1) && changed.cluster.nodes > 0)
      continue;
    if (gpus > 0) changes.push_back(change_of(fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s"), changed, rate));
  }
  return changes;
}

std::vector<Change> layout_changes(const TrainingRequest& request, const Estimate& best) {
  std::vector<Change> changes;
  const ParallelLayout& own = best.layout;
  auto try_layout = [&](std::string what, ParallelLayout layout) {
    layout.budget_gib = 0;
    Estimate other = estimate(request.model, layout, request.cluster);
    changes.push_back({std::move(what), fits(other, request.cluster), best.time.total() / other.time.total() - 1});
  };
  int64_t share = own.micro_batch * own.micro_batches;
  for (int64_t micro_batch : {own.micro_batch * 2, own.micro_batch / 2}) {
    if (micro_batch < 1 || share % micro_batch != 0) continue;
    ParallelLayout layout = own;
    layout.micro_batch = micro_batch;
    layout.micro_batches = share / micro_batch;
    try_layout("micro-batch " + std::to_string(micro_batch), layout);
  }
  for (int64_t zero : {own.mesh.zero + 1, own.mesh.zero - 1}) {
    if (zero < 0 || zero > (own.mesh.pipe > 1 ? 1 : 3) || own.mesh.data * own.mesh.context == 1) continue;
    ParallelLayout layout = own;
    layout.mesh.zero = zero;
    try_layout("ZeRO " + std::to_string(zero), layout);
  }
  if (own.mesh.pipe > 1) add_schedule_changes(request, best, changes);
  add_axis_changes(request, best, changes);
  return changes;
}

std::string limit_of(const std::vector<Change>& changes, const Estimate& best) {
  std::map<std::string, double> gains;
  for (const Change& change : changes)
    if (change.what.starts_with("twice ")) gains[change.what.substr(6)] = change.gain;
  auto most =
      std::max_element(gains.begin(), gains.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  auto percent = [&](const char* what) { return fmt::format("{:+.0f}%", 100 * gains[what]); };
  std::string text = most->first == kMatmuls     ? "matrix products and attention"
                     : most->first == kBandwidth ? "the memory's bandwidth"
                     : most->first == kLinks     ? "links"
                                                 : "memory";
  return fmt::format(
      "limited by {}: twice the FLOP/s would give {} tokens/s, twice the memory's bandwidth {}, twice the links' {}, "
      "twice the memory {}; "
      "{:.1f}% of the step is exposed communication, {:.1f}% is computed again",
      text, percent(kMatmuls), percent(kBandwidth), percent(kLinks), percent(kMemory),
      100 * best.time.communication() / best.time.total(), 100 * best.time.recomputed / best.time.total());
}

}  // namespace tokamak
