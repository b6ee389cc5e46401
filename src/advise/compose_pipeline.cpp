#include "advise/compose.h"

#include "advise/links.h"
#include "compile/balance_blocks.h"
#include "cost/price.h"
#include "passes/step_mesh.h"
#include "plan/pipe_timeline.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tokamak {
namespace {

// Messages of context ranks, and sums over tensor ranks that no gather follows, wait for those of other blocks.
struct StageDepths {
  int64_t few = 1, more = 2;
};
StageDepths stage_depths_of(const MeshConfig& mesh) {
  return mesh.context > 1 || (mesh.tensor > 1 && !mesh.sequence) ? StageDepths{4, 6} : StageDepths{};
}

constexpr const char* kSums = "sync_gradients";

class PipeComposer {
 public:
  explicit PipeComposer(const Composition& c)
      : c_(c), mesh_(c.layout.mesh), num_chunks_(mesh_.pipe * mesh_.interleave),
        depths_(stage_depths_of(mesh_)), estimate_{c.layout, {}, {}} {
    // By then every stage has all that it can have in flight.
    int64_t few = std::min(c.layout.micro_batches, 4 * mesh_.pipe);
    schedule_ = make_pipe_actions(mesh_.schedule, mesh_.pipe, mesh_.interleave, few);
    divide();
    recomputed_.resize(size_t(mesh_.pipe));
  }

  Estimate run() {
    if (double budget = missing_budget(); budget != 0 && time().total() <= c_.most && may_fit(budget)) fit(budget);
    add_memory();
    estimate_.time = time();
    return estimate_;
  }

 private:
  bool splits() const { return mesh_.schedule == "zero_bubble"; }
  // Which of the three stages that are known.
  size_t place(int64_t chunk) const { return chunk == 0 ? 0 : chunk + 1 < num_chunks_ ? 1 : 2; }
  size_t place_of_stage(int64_t stage) const { return stage == 0 ? 0 : stage + 1 < mesh_.pipe ? 1 : 2; }
  int64_t blocks(int64_t chunk) const { return first_block_[size_t(chunk) + 1] - first_block_[size_t(chunk)]; }
  int64_t blocks_of_stage(int64_t stage) const {
    int64_t sum = 0;
    for (int64_t chunk = stage; chunk < num_chunks_; chunk += mesh_.pipe) sum += blocks(chunk);
    return sum;
  }

  // Of the stage's last run, of its first chunk, in which data ranks add up gradients.
  static bool is_last(const std::string& program) { return program.starts_with("last_"); }
  static bool has_last(const StageCost& cost) {
    return std::ranges::any_of(cost.programs, [](const auto& program) { return is_last(program.first); });
  }

  StageCost at(size_t place, int64_t blocks, int64_t kinds) const {
    auto few = [&](int64_t number, std::optional<bool> sums_with_last = {}) -> const StageCost& {
      return c_.blocks.at({number, place, splits(), kinds, estimate_.layout.budget_gib, sums_with_last}, c_.platform);
    };
    auto [less, more] = depths_;
    if (blocks <= more) return few(blocks);  // no line leads back from more blocks, among which messages wait
    // What the compiler chose for more blocks counts: a line leads only through stages of the same programs.
    const StageCost &of_more = few(more), *of_less = &few(less);
    if (has_last(*of_less) != has_last(of_more)) of_less = &few(less, has_last(of_more));
    return mix(*of_less, of_more, double(blocks - less) / double(more - less));
  }
  // Chunks of most stages are alike.
  const StageCost& at(size_t place, int64_t blocks, const Recomputed& some) const {
    auto [known, is_new] = costs_.try_emplace({place, blocks, some.kinds, some.more, some.share});
    if (is_new) {
      known->second = at(place, blocks, some.kinds);
      if (some.share > 0) known->second = mix(known->second, at(place, blocks, some.more), some.share);
    }
    return known->second;
  }

  // As the compiler does, by what each block takes as a chunk of its own.
  void divide() {
    auto seconds_of = [&](int64_t blocks, size_t place) {
      const StageCost& chunk = c_.blocks.at({blocks, place}, c_.platform);
      return chunk.programs.at("forward").time.total() + chunk.programs.at("backward").time.total();
    };
    auto blocks = [&] {
      double middle = seconds_of(1, 1);
      std::vector<double> seconds(size_t(c_.layers), middle);
      seconds.front() += seconds_of(1, 0) - middle;
      seconds.back() += seconds_of(1, 2) - middle;
      return seconds;
    };
    first_block_ = divide_blocks(mesh_, c_.layers, {blocks, [&] {
                                                      return std::array{seconds_of(0, 0), seconds_of(0, 2)};
                                                    }});
  }

  // What a stage takes: its chunks, of which each has programs and states of micro-batches, and beside them what all
  // have together.
  struct Stage {
    MemoryByKind kept;
    double in_flight = 0, arena = 0, beside = 0;  // bytes; `beside` is scratch memory and inputs
    TimeByKind passes, weights;                   // of a micro-batch; what is made of parameters for all of them
    ProgramCost update;
    double sums = 0;     // seconds of gradients that are added up before it
    bool waits = false;  // for another stage's gradients of what both have

    double needed() const { return in_flight + arena; }
    double fixed() const { return kept.total() + beside; }
  };

  Stage stage_of(int64_t stage, const Recomputed& some) const {
    Stage sum;
    add_update(sum, stage, some);
    auto add_program = [&](const ProgramCost& program) {
      sum.arena = std::max(sum.arena, program.arena);
      sum.beside += program.scratch + program.inputs;
    };
    add_program(sum.update);
    for (int64_t chunk = stage; chunk < num_chunks_; chunk += mesh_.pipe) {
      const StageCost& cost = at(place(chunk), blocks(chunk), some);
      for (const auto& [name, program] : cost.programs) {
        if (name == "update" || name == kSums) continue;
        if (is_last(name) && chunk != stage) continue;
        add_program(program);
        if (!is_last(name)) (name == "weights" ? sum.weights : sum.passes) += program.time;
      }
      for (const auto& [life, bytes] : cost.of_micro_batch) sum.in_flight += bytes * in_flight(chunk, life);
    }
    return sum;
  }

  // Of a stage's last run the gradients of its first chunk are added up already; those of its others are not, as in a
  // stage that sends what its last run gives.
  void add_update(Stage& sum, int64_t stage, const Recomputed& some) const {
    const StageCost& whole = at(place_of_stage(stage), blocks_of_stage(stage), some);
    const StageCost& first = at(place(stage), blocks(stage), some);
    sum.kept = whole.kept, sum.update = whole.programs.at("update"), sum.waits = whole.exchanges_gradients;
    if (auto sums = whole.programs.find(kSums); sums != whole.programs.end()) sum.sums = sums->second.time.total();
    if (!has_last(first) || mesh_.interleave == 1) return;
    sum.kept = first.kept, sum.update = first.programs.at("update");
    auto [less, more] = depths_;
    double times = double(blocks_of_stage(stage) - blocks(stage)) / double(more - less);
    for (auto [sign, number] : {std::pair(times, more), std::pair(-times, less)}) {
      const StageCost& others = at(1, number, some);
      sum.kept += sign * others.kept;
      sum.update.time += sign * others.programs.at("update").time;
      sum.update.alone += sign * others.programs.at("update").alone;
      sum.update.arena += sign * others.programs.at("update").arena;
    }
  }

  double in_flight(int64_t chunk, const StateLife& life) const {
    auto [known, is_new] = in_flight_.try_emplace({chunk, life});
    if (is_new) known->second = schedule_.in_flight(chunk % mesh_.pipe, {life.first, chunk}, {life.last, chunk});
    return double(known->second);
  }

  // All stages have one budget: what the fullest has left. 0: all of them fit.
  double missing_budget() {
    double budget = 0;
    for (int64_t stage = 0; stage < mesh_.pipe; ++stage) {
      Stage whole = stage_of(stage, {});
      if (whole.fixed() + whole.needed() <= c_.available) continue;
      double left = c_.available - whole.fixed();
      budget = budget == 0 ? left : std::min(budget, left);
    }
    return budget == 0 ? 0 : budget + freed_by_a_budget(budget);
  }

  // With a budget weights are cast where they are read (passes/hoist_weights.h), and not kept in a low type.
  double freed_by_a_budget(double budget) {
    estimate_.layout.budget_gib = budget_gib_of(budget);
    double least = std::numeric_limits<double>::infinity();
    for (int64_t stage = 0; stage < mesh_.pipe; ++stage) {
      double without = stage_of(stage, {}).kept.total(), with = stage_of(stage, {1, 1, 0}).kept.total();
      least = std::min(least, std::max(without - with, 0.0));
    }
    estimate_.layout.budget_gib = 0;
    return least;
  }

  // In time, with as much computed again on each stage as the curve tells: all micro-batches go through all stages.
  bool may_fit(double budget) const {
    if (!c_.may_recompute) return false;
    for (int64_t stage = 0; stage < mesh_.pipe; ++stage) {
      Stage own = stage_of(stage, {});
      double again = c_.curve.time(budget / own.needed()).value_or(0);
      if (double(c_.layout.micro_batches) * own.passes.total() * (1 + kSureAgain * again) > c_.most) return false;
    }
    return true;
  }

  void fit(double budget) {
    double gib = budget_gib_of(budget);
    for (int64_t stage = 0; stage < mesh_.pipe; ++stage) {
      Stage whole = stage_of(stage, {});
      if (whole.needed() <= budget && whole.fixed() + whole.needed() <= c_.available) continue;
      estimate_.layout.budget_gib = gib;
      // With a budget it is at least what is cast where it is read.
      auto at_least_one = [](int64_t kinds) { return std::max<int64_t>(kinds, 1); };
      auto needed = [&](int64_t kinds) { return stage_of(stage, {at_least_one(kinds), 0, 0}).needed(); };
      Recomputed least = least_recomputed(kFilled * budget, needed, c_.curve, splits());
      recomputed_[size_t(stage)] = {at_least_one(least.kinds), at_least_one(least.more), least.share};
    }
    estimate_.layout.budget_gib = gib;
  }

  void add_memory() {
    for (int64_t stage = 0; stage < mesh_.pipe; ++stage) {
      Stage own = stage_of(stage, recomputed_[size_t(stage)]);
      MemoryByKind memory = own.kept;
      memory.activations += own.in_flight;
      memory.buffers += own.arena + own.beside;
      if (memory.total() > estimate_.memory.total()) estimate_.memory = memory;
    }
  }

  const StageCost& cost_of(int64_t chunk) const {
    return at(place(chunk), blocks(chunk), recomputed_[size_t(chunk % mesh_.pipe)]);
  }

  ChunkSeconds seconds_of(int64_t chunk) const {
    ChunkSeconds seconds{0, 0, 0, 0};
    for (const auto& [name, program] : cost_of(chunk).programs) {
      double taken = program.time.total();
      if (name == "forward") seconds.forward = taken;
      if (name == "backward") seconds.backward = taken;
      if (name == "backward_input") seconds.backward_input = taken;
      if (name == "backward_weight") seconds.backward_weight = taken;
      if (is_last(name)) seconds.last = taken;
    }
    return seconds;
  }

  // By stage, when it is done with few micro-batches, and with the others, of which as many as there are stages always
  // take the same.
  std::vector<double> pipe_ends(const std::vector<ChunkSeconds>& chunks, double transfer) const {
    int64_t few = schedule_.micro_batches, turn = mesh_.pipe, more = c_.layout.micro_batches - few;
    PipeTimeline all = simulate_pipe(schedule_, chunks, transfer);
    if (more == 0) return all.ends;
    PipeSchedule fewer = make_pipe_actions(mesh_.schedule, mesh_.pipe, mesh_.interleave, few - turn);
    double others = double(more) / double(turn) * (all.seconds - simulate_pipe(fewer, chunks, transfer).seconds);
    for (double& end : all.ends) end += others;
    return all.ends;
  }

  // Stages begin their updates when they are done, and wait for each other where the norm is added up: the one counts
  // that all others wait for.
  TimeByKind time() const {
    std::vector<ChunkSeconds> chunks;
    for (int64_t chunk = 0; chunk < num_chunks_; ++chunk) chunks.push_back(seconds_of(chunk));
    double transfer = transfer_seconds(at(1, 1, 0).residual, kPipeAxis, c_.platform.target);
    std::vector<double> ends = pipe_ends(chunks, transfer);
    TimeByKind busiest, weights, update;
    double until_norm = 0, from_norm = 0, end = 0;
    int64_t latest = 0;
    double ends_done = std::max(ends.front(), ends.back());  // what both have is read by the first and the last stage
    for (int64_t stage = 0; stage < mesh_.pipe; ++stage) {
      Stage own = stage_of(stage, recomputed_[size_t(stage)]);
      double done = ends[size_t(stage)] + own.sums;
      if (own.waits) done = std::max(done, ends_done);
      if (own.passes.total() > busiest.total()) busiest = own.passes;
      if (own.weights.total() > weights.total()) weights = own.weights;
      from_norm = std::max(from_norm, own.update.time.total() - own.update.alone);
      if (done + own.update.alone <= until_norm) continue;
      latest = stage, end = done, update = own.update.time;
      until_norm = end + own.update.alone;
    }
    TimeByKind time = weights;
    time += double(c_.layout.micro_batches) * busiest;
    double computed = double(c_.layout.micro_batches) * busiest.total();
    double waits = std::max(0.0, end - computed);
    double sends = std::min(waits, 2 * double(mesh_.pipe - 1) * transfer);
    time.pipe += sends;
    time.bubble += waits - sends + std::max(0.0, until_norm + from_norm - end - update.total());
    time += update;
    return show_sums(time, latest);
  }

  // What sums of gradients are seen of in a stage's last run.
  TimeByKind show_sums(TimeByKind time, int64_t stage) const {
    for (const auto& [name, program] : cost_of(stage).programs) {
      if (!is_last(name)) continue;
      double seen = std::min(program.time.data, time.bubble);
      time.data += seen, time.bubble -= seen;
    }
    return time;
  }

  const Composition& c_;
  const MeshConfig& mesh_;
  int64_t num_chunks_;
  StageDepths depths_;
  Estimate estimate_;
  PipeSchedule schedule_;
  std::vector<int64_t> first_block_;
  std::vector<Recomputed> recomputed_;  // by stage
  mutable std::map<std::tuple<size_t, int64_t, int64_t, int64_t, double>, StageCost> costs_;
  mutable std::map<std::pair<int64_t, StateLife>, int64_t> in_flight_;
};

}  // namespace

Estimate compose_pipeline(const Composition& c) { return PipeComposer(c).run(); }

}  // namespace tokamak
