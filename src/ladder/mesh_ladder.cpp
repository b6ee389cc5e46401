#include "ladder/mesh_ladder.h"

#include "backend/silent_communicator.h"
#include "base/error.h"
#include "config/config.h"
#include "config/validate.h"
#include "exec/mesh_ranks.h"
#include "ladder/trial.h"
#include "passes/step_mesh.h"
#include "run/rank_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

// A pipeline has its sequences in that many micro-batches for each of its stages, or in fewer where they do not divide.
constexpr int64_t kPipeParts = 4;

RunConfig for_ranks(RunConfig config, const MeshConfig& mesh) {
  int64_t ranks = step_mesh(mesh).num_ranks();
  config.mesh = mesh;
  config.train.batch *= ranks;
  config.train.total_batch *= ranks;
  if (mesh.pipe == 1) return config;
  config.train.total_batch = config.step_tokens();
  config.train.batch /= mesh.pipe * std::gcd(config.train.batch / ranks, kPipeParts);
  return config;
}

// None, with the reason, where the run is none for its mesh: the same on all ranks.
std::optional<ResolvedRun> resolve_or_tell(const RunConfig& config, const Target& target, std::string& failure) {
  try {
    validate(config);
    return resolve(config, target);
  } catch (const UserError& error) {
    failure = error.what();
  }
  return {};
}

class MeshLadder {
 public:
  MeshLadder(const RungResult& best, const Platform& platform, Backend& backend, const MeshRanks& ranks,
             const MeshLadderOptions& options)
      : one_(of_leader(&ranks, best.config)), one_rate_(best.ran() ? best.tokens_per_second : 0), platform_(platform),
        backend_(backend), ranks_(ranks), options_(options) {
    platform_.target = of_leader(&ranks, platform.target);
  }

  MeshResult climb(const MeshRung& rung) {
    RunConfig config = for_ranks(one_, rung.mesh);
    MeshResult result{.rung = rung,
                      .ranks = ranks_.mesh().num_ranks(),
                      .sequences = ranks_.mesh().num_ranks() * one_.step_tokens() / one_.model.context,
                      .run = {}};
    if (auto run = resolve_or_tell(config, platform_.target, result.run.failure)) measure(*run, result);
    result.run.name = rung.name;
    return result;
  }

 private:
  void measure(const ResolvedRun& run, MeshResult& result) {
    MeshRanks ranks(run.mesh, ranks_.world());
    PreparedTrial prepared = prepare_trial(run, platform_, backend_, &ranks);
    platform_.tuning.measured_seconds = prepared.platform.tuning.measured_seconds;
    result.run = measure_trial(prepared, backend_, options_.ladder, 0, &ranks);
    result.run.kept = result.run.ran();
    result.run.used_bytes /= options_.ranks_of_process;
    result.run.speedup_step = result.run.speedup_total = one_rate_ > 0 ? result.run.tokens_per_second / one_rate_ : 0;
    if (leads(&ranks)) result.predicted_exposed_ms = prepared.run.exposed_seconds() * 1e3;
    if (result.run.ran()) result.exposed_ms = measure_exposed(prepared, ranks, result.run.ms);
  }

  // All ranks take the steps, as where they share a machine they also share its cores and memory. The slowest is the
  // one that the others wait for.
  std::optional<double> measure_exposed(PreparedTrial& prepared, const MeshRanks& ranks, double ms) {
    meet(&ranks);
    std::unique_ptr<Communicator> world = make_silent(ranks.world(), backend_);
    MeshRanks silent(ranks.mesh(), *world);
    RungResult result = measure_trial(prepared, backend_, options_.ladder, 0, &silent);
    bool failed = any_of(&ranks, !result.ran());
    int64_t slowest_ns = -least_of(&ranks, -int64_t(1e6 * result.ms));
    if (failed) return {};
    return std::max(ms - 1e-6 * double(slowest_ns), 0.0);
  }

  RunConfig one_;
  double one_rate_;  // tokens/s; 0: it did not run
  Platform platform_;
  Backend& backend_;
  const MeshRanks& ranks_;
  MeshLadderOptions options_;
};

}  // namespace

MeshRung mesh_rung(const MeshConfig& asked) {
  MeshRung rung{.name = to_string(step_mesh(asked)), .mesh = asked};
  rung.mesh.data = step_mesh(asked).size(kDataAxis);
  if (asked.pipe > 1) rung.name += ", " + asked.schedule;
  if (asked.interleave > 2) rung.name += fmt::format(" {}", asked.interleave);
  if (asked.zero > 0) rung.name += fmt::format(", ZeRO {}", asked.zero);
  if (asked.tensor > 1 && asked.async_tensor) rung.name += ", async";
  return rung;
}

std::vector<MeshRung> mesh_rungs(const MeshConfig& asked) {
  int64_t ranks = step_mesh(asked).num_ranks();
  TOKAMAK_CHECK(ranks > 1, "one rank is no mesh");
  std::vector<MeshRung> rungs;
  auto add = [&](int64_t data, int64_t context, int64_t tensor, int64_t zero, bool async = false) {
    MeshConfig mesh = asked;
    mesh.pipe = mesh.interleave = 1;
    mesh.data = data, mesh.context = context, mesh.tensor = tensor, mesh.zero = zero;
    mesh.async_tensor = async;
    rungs.push_back(mesh_rung(mesh));
  };
  for (int64_t zero = 0; zero <= 3; ++zero) add(ranks, 1, 1, zero);
  for (bool async : {false, true}) add(1, 1, ranks, 0, async);
  add(1, ranks, 1, 0);
  int64_t factor = 2;
  while (ranks % factor != 0) ++factor;
  if (factor < ranks) add(ranks / factor, 1, factor, 0, asked.async_tensor);
  for (const char* schedule : kPipeSchedules) {
    MeshConfig mesh = asked;
    mesh.pipe = ranks, mesh.data = mesh.context = mesh.tensor = 1, mesh.zero = 0;
    mesh.schedule = schedule;
    mesh.interleave = mesh.schedule == "interleaved" ? 2 : 1;
    rungs.push_back(mesh_rung(mesh));
  }
  MeshRung own = mesh_rung(asked);
  auto is_own = [&](const MeshRung& rung) { return rung.name == own.name; };
  if (std::none_of(rungs.begin(), rungs.end(), is_own)) rungs.push_back(own);
  return rungs;
}

RunConfig for_one_rank(RunConfig config, int64_t ranks) {
  int64_t &batch = config.train.batch, &total = config.train.total_batch;
  if (batch % ranks != 0)
    user_error("[train.batch] expected a multiple of the {} ranks, got {}; the nearest above is {}", ranks, batch,
               (batch / ranks + 1) * ranks);
  if (total % ranks != 0)
    user_error("[train.total_batch] expected a multiple of the {} ranks, got {}; the nearest above is {}", ranks, total,
               (total / ranks + 1) * ranks);
  batch /= ranks;
  total /= ranks;
  config.mesh = {.data = 1, .slots = 1};
  return config;
}

const RungResult* best_rung(const std::vector<RungResult>& rungs) {
  const RungResult* best = nullptr;
  for (const RungResult& rung : rungs) {
    if (rung.optional) continue;
    bool is_better = rung.kept && (!best || !best->kept || rung.tokens_per_second > best->tokens_per_second);
    if (is_better || (!rung.ran() && !(best && best->kept))) best = &rung;
  }
  return best;
}

std::vector<MeshResult> run_mesh_ladder(const RungResult& best, const Platform& platform, Backend& backend,
                                        const MeshRanks& ranks, const std::vector<MeshRung>& rungs,
                                        const MeshLadderOptions& options,
                                        const std::function<void(const MeshResult&)>& report) {
  MeshLadder ladder(best, platform, backend, ranks, options);
  std::vector<MeshResult> results;
  for (const MeshRung& rung : rungs) {
    results.push_back(ladder.climb(rung));
    if (report && leads(&ranks)) report(results.back());
  }
  return results;
}

}  // namespace tokamak
