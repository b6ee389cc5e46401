#include "advise/compose.h"

#include "base/bytes.h"
#include "base/parallel_tasks.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// With fewer, a step's peak of memory may be in another place than with many, and messages that wait for those of other
// blocks have no others to wait for. A line to many blocks begins at more: what it errs by grows with them.
struct LayerDepths {
  int64_t few = 4, more = 6;
};
constexpr int64_t kMany = 64;  // layers

LayerDepths layer_depths_of(const ParallelLayout& layout, int64_t layers) {
  constexpr int64_t kManyRanks = 12;
  const MeshConfig& mesh = layout.mesh;
  // Over more ranks than a node has gradients that are sent beside the backward pass wait for one another; buckets end
  // where blocks do not, so that what a block takes is a mean over some.
  bool sends_beside = layout.micro_batches == 1 || !adds_gradients_once(mesh.zero);
  bool waits = mesh.context > 1 || mesh.zero == 3 || (sends_beside && mesh.data >= kManyRanks);
  if (!waits) return {};
  return layers < kMany ? LayerDepths{6, 16} : LayerDepths{10, 16};
}

constexpr LayerDepths kDeep = {16, 32};

class StepComposer {
 public:
  explicit StepComposer(const Composition& c)
      : c_(c), depths_(layer_depths_of(c.layout, c.layers)), estimate_{c.layout, {}, {}} {}

  Estimate run() {
    std::optional<bool> sums_with_last = false;  // first without, which takes less to compile
    StageCost cost = at_depth(0, double(c_.layers), sums_with_last);
    if (c_.blocks.has_choice() && may_sum_with_last(cost)) {
      sums_with_last.reset();
      cost = at_depth(0, double(c_.layers));
    }
    if (waits_more_with_depth(sums_with_last) && time_of(cost).total() <= c_.most) {
      depths_ = kDeep;
      cost = at_depth(0, double(c_.layers), sums_with_last);
    }
    StageCost ends = at_depth(0, 0, sums_with_last);
    double budget = c_.available - cost.fixed();
    if (cost.intermediate() > budget && may_fit(cost, budget)) {
      estimate_.layout.budget_gib = budget_gib_of(budget);
      Recomputed some = least_recomputed(
          kFilled * budget, [&](int64_t kinds) { return at_depth(kinds, double(c_.layers)).intermediate(); }, c_.curve);
      cost = at(some, double(c_.layers)), ends = at(some, 0);
    }
    add(cost, ends);
    return estimate_;
  }

 private:
  StageCost at_depth(int64_t kinds, double blocks, std::optional<bool> sums = {}) const {
    auto few = [&](int64_t number) { return FewBlocks{number, 0, false, kinds, estimate_.layout.budget_gib, sums}; };
    auto of = [&](const FewBlocks& blocks) -> const StageCost& { return c_.blocks.at(blocks, c_.platform); };
    if (c_.layers <= depths_.more && blocks == double(c_.layers)) return of(few(c_.layers));
    FewBlocks less = few(depths_.few), more = few(depths_.more);
    parallel_tasks(2, [&](int64_t i) { of(i == 0 ? more : less); });
    // What the compiler chose for more blocks counts: a line leads only through steps of the same programs.
    bool sums_with_last = of(more).programs.contains("last_micro_batch");
    if (of(less).programs.contains("last_micro_batch") != sums_with_last) less.sums_with_last = sums_with_last;
    return mix(of(less), of(more), (blocks - double(less.blocks)) / double(more.blocks - less.blocks));
  }
  StageCost at(const Recomputed& some, double blocks) const {
    StageCost less = at_depth(some.kinds, blocks);
    return some.share > 0 ? mix(less, at_depth(some.more, blocks), some.share) : less;
  }

  // Where links have more to do than a block's backward pass hides, what is left is seen only when all that hides
  // nothing else is full: a line through few blocks tells too little.
  bool waits_more_with_depth(std::optional<bool> sums) const {
    constexpr double kSeen = 0.05;  // of a block's time
    if (c_.layout.mesh.data == 1 || c_.layers <= depths_.more || c_.layers >= kMany) return false;
    TimeByKind none = time_of(at_depth(0, 0, sums)), one = time_of(at_depth(0, 1, sums));
    return one.data - none.data > kSeen * (one.total() - none.total());
  }

  // With a budget ranks do not add gradients up beside the last micro-batch, which needs no less memory; and beside it
  // they hide no more than what the update sends.
  bool may_sum_with_last(const StageCost& without) const {
    const TimeByKind& update = without.programs.at("update").time;
    return without.programs.at("micro_batch").arena <= c_.available - without.fixed() &&
           time_of(without).total() - update.data - update.context <= c_.most;
  }

  TimeByKind time_of(const StageCost& cost) const {
    TimeByKind time;
    auto alike = double(c_.layout.micro_batches - int64_t(cost.programs.count("last_micro_batch")));
    for (const auto& [name, program] : cost.programs) time += (name == "micro_batch" ? alike : 1.0) * program.time;
    return time;
  }

  // In time, with as much computed again as the curve tells; what it does not know may.
  bool may_fit(const StageCost& cost, double budget) const {
    if (!c_.may_recompute) return false;
    double again = c_.curve.time(budget / cost.intermediate()).value_or(0);
    return time_of(cost).total() * (1 + kSureAgain * again) <= c_.most;
  }

  void add(const StageCost& cost, const StageCost& ends) {
    estimate_.time = time_of(cost);
    MemoryByKind& memory = estimate_.memory;
    memory = cost.kept;
    const std::pair<const std::string, ProgramCost>* largest = nullptr;
    for (const auto& one : cost.programs) {
      const auto& [name, program] = one;
      memory.buffers += program.scratch + program.inputs;
      if (!largest || program.arena > largest->second.arena) largest = &one;
    }
    auto of_ends = ends.programs.find(largest->first);
    double arena = largest->second.arena,
           fixed = of_ends == ends.programs.end() ? 0 : std::clamp(of_ends->second.arena, 0.0, arena);
    memory.activations += arena - fixed;
    memory.buffers += fixed;
  }

  const Composition& c_;
  LayerDepths depths_;
  Estimate estimate_;
};

}  // namespace

// Where much is missing, all kinds are tried first. A kind may take more memory than it frees, until another one
// follows: then one before it is what some of the next are added to.
Recomputed least_recomputed(double budget, const std::function<double(int64_t kinds)>& needed,
                            const RecomputeCurve& curve, bool frees_little) {
  constexpr int64_t kAll = 16;  // no more are of use
  constexpr double kAlike = 1.05;
  std::optional<int64_t> expected = curve.kinds(budget / needed(0));
  if ((frees_little || !expected) && needed(kAll) > budget) return {kAll, kAll, 0};
  int64_t first = std::clamp<int64_t>(expected.value_or(3), 1, kAll), enough = first;
  while (enough < kAll && needed(enough) > budget)
    if (++enough == first + 2 && needed(kAll) > budget) return {kAll, kAll, 0};
  while (enough > 1 && needed(enough - 1) <= budget) --enough;
  int64_t less = enough - 1;
  for (int64_t kinds = less - 1; kinds >= 0 && curve.is_flat_before(kinds + 1); --kinds) {
    if (needed(kinds) >= kAlike * needed(less)) break;
    if (needed(kinds) <= needed(less)) less = kinds;
  }
  double more = needed(less), least = needed(enough);
  return {less, enough, more > least ? std::clamp((more - budget) / (more - least), 0.0, 1.0) : 1};
}

double budget_gib_of(double bytes) { return std::max(0.01, std::floor(bytes / kGiB * 100) / 100); }

Estimate compose_step(const Composition& c) { return StepComposer(c).run(); }

}  // namespace tokamak
