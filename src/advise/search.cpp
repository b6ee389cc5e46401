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
constexpr size_t kZero = 4;  // its place in a key

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
    curve_ = rough_.curve();
    for (size_t place = 0; place < layouts_.size(); ++place) add({place});
    for (int round = 0; has_next(limits()) && !is_enough(round); ++round) look_at_next();
    std::vector<Estimate> list;
    for (auto& [key, one] : best_) list.push_back(std::move(one.best));
    std::stable_sort(list.begin(), list.end(),
                     [](const Estimate& a, const Estimate& b) { return a.time.total() < b.time.total(); });
    return list;
  }

 private:
  struct Candidate {
    size_t place = 0;  // among all that are allowed
    RoughBlocks blocks = {};
    double least = 0;       // seconds: it takes no less
    bool is_large = false;  // it does not fit unless values are computed again
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

  // Of a mesh: the fastest micro-batch, and where that is interleaved what it is with the best number of chunks.
  struct Found {
    size_t place = 0;  // among all that are allowed
    Estimate usual, best;
  };

  // What takes longer than the last of the wanted meshes is of no use, nor what takes more than was said. Layouts which
  // may have more chunks are compared by as many as all have.
  struct Limits {
    double seconds = kNever, may_have_more = kNever;
  };
  Limits limits() const {
    return {limit([](const Found& one) { return one.best.time.total(); }),
            limit([](const Found& one) { return one.usual.time.total(); })};
  }
  template <typename Seconds>
  double limit(Seconds seconds_of) const {
    if (best_.size() < request_.wanted) return request_.most;
    std::vector<double> seconds;
    for (const auto& [key, one] : best_) seconds.push_back(seconds_of(one));
    std::nth_element(seconds.begin(), seconds.begin() + int64_t(request_.wanted) - 1, seconds.end());
    return std::min(seconds[request_.wanted - 1], request_.most);
  }
  double limit_of(const ParallelLayout& layout, const Limits& limits) const {
    return may_have_more_chunks(layout.mesh) ? limits.may_have_more : limits.seconds;
  }

  // Drops what is known to take longer.
  bool has_next(const Limits& limits) {
    while (!queue_.empty() && queue_.top().least > limit_of(layouts_[queue_.top().place], limits)) queue_.pop();
    return !queue_.empty();
  }

  // What was told roughly of micro-batches of one mesh is off by nearly the same, but for what each of them sends; and
  // of a pipeline with ZeRO as of that without.
  bool is_too_slow(const Candidate& candidate, double limit) const {
    constexpr double kAlike = 0.995, kAlikeThatSend = 0.99, kAlikeMeshes = 0.98;
    if (candidate.is_large) return false;  // more is known of it
    const MeshConfig& mesh = layouts_[candidate.place].mesh;
    MeshKey key = mesh_key(layouts_[candidate.place]);
    if (auto best = best_.find(key); best != best_.end()) {
      auto ratio = ratio_.find(key);
      double alike = mesh.zero <= 1 ? kAlike : kAlikeThatSend;
      double factor = ratio == ratio_.end() ? 1 : std::max(1.0, alike * ratio->second);
      return factor * candidate.least > best->second.usual.time.total();
    }
    if (mesh.pipe == 1 || mesh.zero > 1) return false;
    std::get<kZero>(key) = 1 - mesh.zero;
    auto ratio = ratio_.find(key);
    return ratio != ratio_.end() && kAlikeMeshes * ratio->second * candidate.least > limit;
  }

  // Those of a few groups of blocks at a time, which are compiled side by side.
  void look_at_next() {
    const size_t at_once = std::min<size_t>(request_.wanted, 2);
    std::map<BlockKey, std::vector<Candidate>> groups;
    const Limits limit = limits();
    while (has_next(limit)) {
      Candidate next = queue_.top();
      const ParallelLayout& layout = layouts_[next.place];
      BlockKey key = block_key(layout);
      if (!is_known(next)) {
        know_better(limit);
        continue;
      }
      if (!groups.contains(key) && groups.size() == at_once) break;
      queue_.pop();
      if (!is_too_slow(next, limit_of(layout, limit))) groups[key].push_back(next);
    }
    estimate_all(groups, limit);
  }

  // Some of those that come next, by blocks more like their own, which are compiled side by side.
  void know_better(const Limits& limit) {
    constexpr size_t kAtOnce = 4;  // that take compiling
    std::vector<Candidate> some;
    std::vector<RoughCosts::Asked> asked;
    size_t unknown = 0;
    while (unknown < kAtOnce && has_next(limit) && !is_known(queue_.top())) {
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
  double most_of(const ParallelLayout& layout, const Limits& limits) const {
    auto at = best_.find(mesh_key(layout));
    double most = limit_of(layout, limits);
    return at == best_.end() ? most : std::min(most, at->second.usual.time.total());
  }

  // What does not fit as it is waits until it is the next among all others again: to find how little must be computed
  // again takes long, and often it is known by then that others are faster. With more chunks a pipeline may be.
  void estimate_all(const std::map<BlockKey, std::vector<Candidate>>& groups, const Limits& limits) {
    struct Task {
      BlockCosts* blocks = nullptr;
      const std::vector<Candidate>* candidates = nullptr;
      std::vector<std::optional<Found>> found = {};
    };
    std::vector<Task> tasks;
    for (const auto& [key, candidates] : groups)
      tasks.push_back({&request_.library->of(request_.run, layouts_[candidates[0].place]), &candidates});
    parallel_tasks(int64_t(tasks.size()), [&](int64_t i) {
      Task& task = tasks[size_t(i)];
      for (const Candidate& one : *task.candidates) task.found.push_back(find(one, *task.blocks, limits));
    });
    for (const Task& task : tasks)
      for (size_t i = 0; i < task.found.size(); ++i)
        if (task.found[i]) take(*task.found[i], (*task.candidates)[i]);
  }

  std::optional<Found> find(const Candidate& candidate, BlockCosts& blocks, const Limits& limits) const {
    const ParallelLayout& layout = layouts_[candidate.place];
    bool may_have_more = may_have_more_chunks(layout.mesh);
    double most = most_of(layout, limits);
    std::optional<Estimate> one = try_layout(layout, blocks, most, candidate.is_large || may_have_more);
    if (!one) return {};
    may_have_more &= fits(*one, request_.cluster);
    return Found{candidate.place, *one, may_have_more ? with_more_chunks(*one, blocks) : *one};
  }

  void take(const Found& found, Candidate candidate) {
    const Estimate& one = found.usual;
    if (fits(one, request_.cluster)) return keep(found);
    if (candidate.is_large || may_have_more_chunks(one.layout.mesh)) return;
    candidate.is_large = true;
    candidate.least = std::max(candidate.least, one.time.total());
    queue_.push(candidate);
  }

  // None where the compiler refuses it. It may not fit where it takes more than `most` seconds anyway, or nothing may
  // be computed again to make it fit.
  std::optional<Estimate> try_layout(const ParallelLayout& layout, BlockCosts& blocks, double most,
                                     bool makes_fit) const {
    try {
      return estimate(request_.run, layout, request_.cluster, platform_, blocks, curve_, most, makes_fit);
    } catch (const UserError&) {  // as of a batch that cannot be halved
    }
    return {};
  }

  bool may_have_more_chunks(const MeshConfig& mesh) const {
    return mesh.interleave > 1 && mesh.chunk_layers.empty() &&
           std::ranges::any_of(request_.schedules, &ScheduleChoice::or_more_chunks);
  }

  // More chunks make the bubble smaller, and send more: the time has one minimum, but for chunks of one layer more than
  // others.
  Estimate with_more_chunks(Estimate best, BlockCosts& blocks) const {
    constexpr int64_t kInVain = 2;
    ParallelLayout layout = best.layout;
    layout.budget_gib = 0;
    int64_t most = most_chunks(request_.run.model.layers) / layout.mesh.pipe;
    for (int64_t in_vain = 0; in_vain < kInVain && ++layout.mesh.interleave <= most; ++in_vain) {
      std::optional<Estimate> one = try_layout(layout, blocks, best.time.total(), true);
      if (!one || !fits(*one, request_.cluster) || one->time.total() >= best.time.total()) continue;
      best = std::move(*one);
      in_vain = -1;
    }
    return best;
  }

  void keep(const Found& found) {
    const Estimate& one = found.usual;
    MeshKey key = mesh_key(one.layout);
    if (one.layout.budget_gib == 0) {  // little is known roughly of what is computed again
      double ratio = one.time.total() / rough_.seconds(layouts_[found.place]).value_or(kNever);
      double& least = ratio_.try_emplace(key, ratio).first->second;
      least = std::min(least, ratio);
    }
    auto [at, is_new] = best_.try_emplace(key, found);
    if (is_new) return;
    Found& known = at->second;
    auto order = [](const Found& some) { return std::tuple(some.usual.time.total(), some.place); };
    if (order(found) < order(known)) known.usual = found.usual, known.place = found.place;
    if (found.best.time.total() < known.best.time.total()) known.best = found.best;
  }

  const TrainingRequest& request_;
  Platform platform_;
  RoughCosts rough_;
  RecomputeCurve curve_;
  std::map<MeshKey, double> ratio_;  // of an estimate to what was said roughly, the least of a mesh
  std::vector<ParallelLayout> layouts_;
  std::priority_queue<Candidate> queue_;
  std::map<MeshKey, Found> best_;
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
        "those are fewer) or at most a third more; change --gpus, --train.batch, --train.total_batch or --mesh.*",
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
