#include "advise/changes.h"

#include "base/parallel_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace tokamak {
namespace {

// Tokens/s, of the fastest layout or of one that is nearly as fast, or what is known already where no other is faster;
// 0 where nothing fits.
double best_rate(TrainingRequest request, double known = 0) {
  request.wanted = 1;
  request.rounds = 8;
  if (known > 0) request.most = tokens_of_step(request) / known;
  std::vector<Estimate> found = search_layouts(request);
  return std::max(known, found.empty() ? 0 : tokens_of_step(request) / found[0].time.total());
}

// The fastest of these layouts, with as much computed again as they need then.
double rate_of_these(const TrainingRequest& request, const std::vector<Estimate>& layouts) {
  double best = 0;
  for (size_t i = 0; i < std::min(layouts.size(), request.wanted); ++i) {
    ParallelLayout layout = layouts[i].layout;
    layout.budget_gib = 0;
    Estimate one = estimate(request, layout, best > 0 ? tokens_of_step(request) / best : request.most);
    if (fits(one, request.cluster)) best = std::max(best, tokens_of_step(request) / one.time.total());
  }
  return best;
}

// Whether one of the fastest has as many ranks on all axes but data.
bool divides_alike(const ParallelLayout& layout, const std::vector<Estimate>& found) {
  constexpr size_t kFastest = 3;
  return std::any_of(found.begin(), found.begin() + int64_t(std::min(found.size(), kFastest)),
                     [&](const Estimate& one) {
                       const MeshConfig &a = layout.mesh, &b = one.layout.mesh;
                       return a.pipe == b.pipe && a.context == b.context && a.tensor == b.tensor;
                     });
}

// By what the request allows, which only some of those that were found are.
Change change_of(const std::string& what, const TrainingRequest& changed, const std::vector<Estimate>& found,
                 double rate) {
  double known = 0;
  for (const Estimate& one : found)
    if (changed.allows(one.layout)) known = std::max(known, tokens_of_step(changed) / one.time.total());
  double other = best_rate(changed, known);
  return {what, other > 0, other / rate - 1};
}

// What would be otherwise; they are answered side by side, those that take long, which come last, first.
using Question = std::function<Change()>;
std::vector<Change> answer_all(const std::vector<Question>& questions) {
  std::vector<Change> changes(questions.size());
  parallel_tasks(int64_t(questions.size()), [&](int64_t i) {
    size_t place = questions.size() - 1 - size_t(i);
    changes[place] = questions[place]();
  });
  return changes;
}

constexpr std::pair<const char*, int64_t MeshConfig::*> kAxes[] = {
    {"pipe", &MeshConfig::pipe}, {"context", &MeshConfig::context}, {"tensor", &MeshConfig::tensor}};

// Twice and half of each axis, with what data has then, and the best of all else but a pipeline's schedule.
void add_axis_changes(const TrainingRequest& request, const Estimate& best, const std::vector<Estimate>& found,
                      std::vector<Question>& questions) {
  double rate = tokens_of_step(request) / best.time.total();
  const MeshConfig own = best.layout.mesh;
  const std::vector<ParallelLayout> layouts =
      all_layouts(request.run, request.gpus, request.cluster.gpus_per_node, request.sequences, request.schedules);
  for (auto [name, axis] : kAxes)
    for (int64_t size : {own.*axis * 2, own.*axis / 2}) {
      MeshConfig wanted = own;
      wanted.*axis = size;
      bool holds_schedule = wanted.pipe > 1 && own.pipe > 1;
      TrainingRequest changed = request;
      changed.allows = [wanted, holds_schedule](const ParallelLayout& layout) {
        return (!holds_schedule || layout.mesh.schedule == wanted.schedule) &&
               std::all_of(std::begin(kAxes), std::end(kAxes),
                           [&](auto one) { return layout.mesh.*one.second == wanted.*one.second; });
      };
      if (size > 0 && std::ranges::any_of(layouts, changed.allows))
        questions.push_back([=, &found] { return change_of(fmt::format("{} {}", name, size), changed, found, rate); });
    }
}

// The other schedules on the same mesh, each with its best micro-batch.
void add_schedule_changes(const TrainingRequest& request, const Estimate& best, std::vector<Question>& questions) {
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
    if (!allowed_layouts(changed).empty())
      questions.push_back([=] { return change_of("schedule " + choice.schedule, changed, {}, rate); });
  }
}

void scale_links(ClusterConfig& cluster, double factor) {
  cluster.within.bandwidth.value *= factor;
  cluster.between.bandwidth.value *= factor;
  cluster.within.sums.value *= factor;
  cluster.between.sums.value *= factor;
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

std::vector<Change> cluster_changes(const TrainingRequest& request, const std::vector<Estimate>& found) {
  double rate = tokens_of_step(request) / found[0].time.total();
  std::vector<Question> questions;
  for (const Knob& knob : kKnobs)
    for (double factor : {2.0, 0.5}) {
      TrainingRequest changed = request;
      knob.scale(changed.cluster, factor);
      std::string what = std::string(factor > 1 ? "twice " : "half ") + knob.what;
      questions.push_back([=, &found, is_memory = knob.what == kMemory] {
        double other = rate_of_these(changed, found);
        if (is_memory) other = best_rate(changed, other);
        return Change{what, other > 0, other / rate - 1};
      });
    }
  for (int64_t gpus : {request.gpus * 2, request.gpus / 2}) {
    TrainingRequest changed = request;
    changed.gpus = gpus;
    if (gpus > changed.cluster.gpus_per_node * std::max<int64_t>(changed.cluster.nodes, 1) && changed.cluster.nodes > 0)
      continue;
    if (gpus == 0) continue;
    questions.push_back([=, &found] {
      TrainingRequest alike = changed;
      alike.allows = [&](const ParallelLayout& layout) { return divides_alike(layout, found); };
      double other = best_rate(alike);
      alike.allows = [](const ParallelLayout&) { return true; };
      if (other == 0) other = best_rate(alike);
      return Change{fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s"), other > 0, other / rate - 1};
    });
  }
  return answer_all(questions);
}

std::vector<Change> layout_changes(const TrainingRequest& request, const Estimate& best,
                                   const std::vector<Estimate>& found) {
  std::vector<Question> questions;
  const ParallelLayout& own = best.layout;
  auto try_layout = [&](std::string what, ParallelLayout layout) {
    layout.budget_gib = 0;
    questions.push_back([=, &request, &best] {
      Estimate other = estimate(request, layout);
      return Change{what, fits(other, request.cluster), best.time.total() / other.time.total() - 1};
    });
  };
  int64_t share = own.micro_batch * own.micro_batches;
  for (int64_t micro_batch : {own.micro_batch * 2, own.micro_batch / 2}) {
    if (micro_batch < 1 || share % micro_batch != 0) continue;
    ParallelLayout layout = own;
    layout.micro_batch = micro_batch;
    layout.micro_batches = share / micro_batch;
    if (own.mesh.interleave > 1 && layout.micro_batches % own.mesh.pipe != 0) continue;
    try_layout("micro-batch " + std::to_string(micro_batch), layout);
  }
  for (int64_t zero : {own.mesh.zero + 1, own.mesh.zero - 1}) {
    if (zero < 0 || zero > (own.mesh.pipe > 1 ? 1 : 3) || own.mesh.data * own.mesh.context == 1) continue;
    ParallelLayout layout = own;
    layout.mesh.zero = zero;
    try_layout("ZeRO " + std::to_string(zero), layout);
  }
  if (own.mesh.pipe > 1) add_schedule_changes(request, best, questions);
  add_axis_changes(request, best, found, questions);
  return answer_all(questions);
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
