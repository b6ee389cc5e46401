#include "advise/search.h"

#include "advise/rough_cost.h"
#include "base/error.h"
#include "base/parallel_tasks.h"
#include "config/chunk_layers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>

namespace tokamak {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

auto mesh_key(const ParallelLayout& layout) {
  const MeshConfig& m = layout.mesh;
  return std::tuple(m.pipe, m.data, m.context, m.tensor, m.zero, m.pipe > 1 ? m.schedule : "");
}
using MeshKey = decltype(mesh_key({}));

// The layouts that may be fast are looked at first, and each more closely the longer it stays among them: by what its
// blocks take at least, and then as a whole.
class Search {
 public:
  explicit Search(const TrainingRequest& request)
      : request_(request), platform_(request.platform(request.cluster.gpu)), rough_(request, platform_),
        layouts_(allowed_layouts(request)) {}

  std::vector<Estimate> run() {
    std::vector<RoughCosts::Asked> asked;
    for (const ParallelLayout& layout : layouts_) asked.push_back({&layout});
    rough_.prepare(asked);
    for (size_t place = 0; place < layouts_.size(); ++place) add({place});
    for (int round = 0; !queue_.empty() && queue_.top().least <= most() && !is_enough(round); ++round) look_at_next();
    if (tries_more_chunks()) try_more_chunks();
    std::vector<Estimate> list;
    for (auto& [key, one] : best_) list.push_back(std::move(one.first));
    std::stable_sort(list.begin(), list.end(),
                     [](const Estimate& a, const Estimate& b) { return a.time.total() < b.time.total(); });
    return list;
  }

 private:
  struct Candidate {
    size_t place = 0;  // among all that are allowed
    RoughBlocks blocks = {};
    double least = 0;  // seconds: it takes no less
    bool operator<(const Candidate& other) const { return std::tie(other.least, other.place) < std::tie(least, place); }
  };

  // It took no more by blocks that are less like its own.
  void add(Candidate candidate) {
    std::optional<double> seconds = rough_.seconds(layouts_[candidate.place], candidate.blocks);
    if (!seconds) return;
    candidate.least = std::max(*seconds, candidate.least);
    queue_.push(candidate);
  }
  // As well as without estimating it.
  bool is_known(const Candidate& candidate) const { return candidate.blocks.are_those_of(layouts_[candidate.place]); }

  bool is_enough(int rounds) const { return request_.rounds > 0 && rounds >= request_.rounds && !best_.empty(); }

  // What takes longer than the last of the wanted meshes is of no use, nor what takes more than was said.
  double most() const {
    if (best_.size() < request_.wanted) return request_.most;
    std::vector<double> seconds;
    for (const auto& [key, one] : best_) seconds.push_back(one.first.time.total());
    std::nth_element(seconds.begin(), seconds.begin() + int64_t(request_.wanted) - 1, seconds.end());
    return std::min(seconds[request_.wanted - 1], request_.most);
  }

  // What was told roughly of micro-batches of one mesh is off by nearly the same, but for what each of them sends.
  bool is_slower_in_mesh(const Candidate& candidate) const {
    constexpr double kAlike = 0.995, kAlikeThatSend = 0.99;
    MeshKey key = mesh_key(layouts_[candidate.place]);
    auto best = best_.find(key);
    if (best == best_.end()) return false;
    double alike = layouts_[candidate.place].mesh.zero <= 1 ? kAlike : kAlikeThatSend;
    auto ratio = ratio_.find(key);
    double factor = ratio == ratio_.end() ? 1 : std::max(1.0, alike * ratio->second);
    return factor * candidate.least > best->second.first.time.total();
  }

  // Those of a few groups of blocks at a time, which are compiled side by side.
  void look_at_next() {
    constexpr size_t kAtOnce = 2;
    std::map<BlockKey, std::vector<size_t>> groups;  // places
    double limit = most();
    while (!queue_.empty() && queue_.top().least <= limit) {
      Candidate next = queue_.top();
      const ParallelLayout& layout = layouts_[next.place];
      BlockKey key = block_key(layout);
      if (!is_known(next)) {
        know_better(limit);
        continue;
      }
      if (!groups.contains(key) && groups.size() == kAtOnce) break;
      queue_.pop();
      if (!is_slower_in_mesh(next)) groups[key].push_back(next.place);
    }
    estimate_all(groups, limit);
  }

  // Some of those that come next, by blocks more like their own, which are compiled side by side.
  void know_better(double limit) {
    constexpr size_t kAtOnce = 4;  // that take compiling
    std::vector<Candidate> some;
    std::vector<RoughCosts::Asked> asked;
    size_t unknown = 0;
    while (unknown < kAtOnce && !queue_.empty() && !is_known(queue_.top()) && queue_.top().least <= limit) {
      Candidate next = queue_.top();
      queue_.pop();
      const ParallelLayout& layout = layouts_[next.place];
      next.blocks = next.blocks.closer_to(layout);
      unknown += !rough_.knows(layout, next.blocks);
      some.push_back(next);
      asked.push_back({&layout, next.blocks});
    }
    rough_.prepare(asked);
    for (const Candidate& one : some) add(one);
  }

  // What a layout may take, with a limit for all: no more than another one of its mesh.
  double most_of(size_t place, double limit) const {
    auto at = best_.find(mesh_key(layouts_[place]));
    return at == best_.end() ? limit : std::min(limit, at->second.first.time.total());
  }

  void estimate_all(const std::map<BlockKey, std::vector<size_t>>& groups, double limit) {
    struct Task {
      BlockCosts* blocks = nullptr;
      const std::vector<size_t>* places = nullptr;
      std::vector<std::optional<Estimate>> found = {};
    };
    std::vector<Task> tasks;
    for (const auto& [key, places] : groups)
      tasks.push_back({&request_.library->of(request_.run, layouts_[places[0]]), &places});
    parallel_tasks(int64_t(tasks.size()), [&](int64_t i) {
      Task& task = tasks[size_t(i)];
      for (size_t place : *task.places)
        task.found.push_back(try_layout(layouts_[place], *task.blocks, most_of(place, limit)));
    });
    for (const Task& task : tasks)
      for (size_t i = 0; i < task.found.size(); ++i)
        if (task.found[i]) keep(*task.found[i], (*task.places)[i]);
  }

  // None where the compiler refuses it, or it does not fit, or takes more than `most` seconds anyway.
  std::optional<Estimate> try_layout(const ParallelLayout& layout, BlockCosts& blocks, double most) {
    try {
      Estimate one = estimate(request_.run, layout, request_.cluster, platform_, blocks, rough_.curve(), most);
      if (fits(one, request_.cluster)) return one;
    } catch (const UserError&) {  // as of a batch that cannot be halved
    }
    return {};
  }

  bool tries_more_chunks() const {
    return std::any_of(request_.schedules.begin(), request_.schedules.end(),
                       [](const ScheduleChoice& choice) { return choice.or_more_chunks; });
  }

  // Of the best micro-batch of each mesh. More chunks make the bubble smaller, and send more: the time has one minimum,
  // but for chunks of one layer more than others.
  void try_more_chunks() {
    constexpr int64_t kInVain = 2;
    for (auto& [key, of_mesh] : best_) {
      Estimate& best = of_mesh.first;
      ParallelLayout layout = best.layout;
      if (layout.mesh.interleave == 1 || !layout.mesh.chunk_layers.empty()) continue;
      layout.budget_gib = 0;
      BlockCosts& blocks = request_.library->of(request_.run, layout);
      int64_t most = most_chunks(request_.run.model.layers) / layout.mesh.pipe;
      for (int64_t in_vain = 0; in_vain < kInVain && ++layout.mesh.interleave <= most; ++in_vain) {
        std::optional<Estimate> one = try_layout(layout, blocks, best.time.total());
        if (!one || one->time.total() >= best.time.total()) continue;
        best = std::move(*one);
        in_vain = -1;
      }
    }
  }

  void keep(const Estimate& one, size_t place) {
    if (one.layout.budget_gib == 0) {  // little is known roughly of what is computed again
      double ratio = one.time.total() / rough_.seconds(layouts_[place]).value_or(kNever);
      double& least = ratio_.try_emplace(mesh_key(one.layout), ratio).first->second;
      least = std::min(least, ratio);
    }
    auto [at, is_new] = best_.try_emplace(mesh_key(one.layout), one, place);
    if (is_new) return;
    auto order = [](const Estimate& estimate, size_t at) { return std::tuple(estimate.time.total(), at); };
    if (order(one, place) < order(at->second.first, at->second.second)) at->second = {one, place};
  }

  const TrainingRequest& request_;
  Platform platform_;
  RoughCosts rough_;
  std::map<MeshKey, double> ratio_;  // of an estimate to what was said roughly, the least of a mesh
  std::vector<ParallelLayout> layouts_;
  std::priority_queue<Candidate> queue_;
  std::map<MeshKey, std::pair<Estimate, size_t>> best_;  // with its place among all
};

}  // namespace

std::vector<ParallelLayout> allowed_layouts(const TrainingRequest& request) {
  std::vector<ParallelLayout> layouts =
      all_layouts(request.run, request.gpus, request.cluster.gpus_per_node, request.sequences, request.schedules);
  std::erase_if(layouts, [&](const ParallelLayout& layout) { return !request.allows(layout); });
  return layouts;
}

bool fits(const Estimate& estimate, const ClusterConfig& cluster) {
  return estimate.memory.total() <= usable_bytes(cluster, estimate.layout.mesh);
}

Estimate estimate(const TrainingRequest& request, const ParallelLayout& layout, double most) {
  Platform platform = request.platform(request.cluster.gpu);
  BlockCosts& blocks = request.library->of(request.run, layout);
  return estimate(request.run, layout, request.cluster, platform, blocks, RoughCosts(request, platform).curve(), most);
}

std::vector<Estimate> search_layouts(const TrainingRequest& request) { return Search(request).run(); }

// Those with the fewest bytes of parameters and states first; a smaller micro-batch never needs more.
Estimate smallest_layout(const TrainingRequest& request) {
  Platform platform = request.platform(request.cluster.gpu);
  RoughCosts rough(request, platform);
  std::map<MeshKey, ParallelLayout> smallest;
  for (const ParallelLayout& layout : allowed_layouts(request)) {
    ParallelLayout& of_mesh = smallest.try_emplace(mesh_key(layout), layout).first->second;
    if (layout.micro_batch < of_mesh.micro_batch) of_mesh = layout;
  }
  if (smallest.empty())
    user_error(
        "[plan] expected a layout of {0} GPUs that the model allows, got none: ranks of all axes are {0}, those of "
        "data divide the {1} sequences of a step and train.batch, those of tensor the {2} heads (of keys, where "
        "those are fewer); change --gpus, --train.batch, --train.total_batch or --mesh.*",
        request.gpus, request.sequences, request.run.model.num_kv_heads());
  std::multimap<double, ParallelLayout> order;
  for (auto& [key, layout] : smallest) order.emplace(rough.kept_bytes(layout), layout);
  std::optional<Estimate> best;
  for (const auto& [least, layout] : order) {
    if (best && least >= best->memory.total()) break;
    Estimate one = estimate(request, layout);
    if (!best || one.memory.total() < best->memory.total()) best = std::move(one);
  }
  return *best;
}

}  // namespace tokamak
