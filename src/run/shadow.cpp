#include "run/shadow.h"

#include "base/error.h"
#include "passes/count_saturated.h"
#include "run/rank_decisions.h"
#include "run/step_inputs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/ranges.h>

namespace tokamak {
namespace {

constexpr double kLeastShare = 1e-8;  // of the squares of all gradients

// What is no number is less than all that are.
double rank_of(double cosine) { return std::isnan(cosine) ? -2 : cosine; }

// Scalars of a program, without waiting for it.
class Scalars {
 public:
  void read(const Program& program) {
    const std::string& name = program.plan().graph.name();
    for (const Result& result : program.plan().graph.results())
      values_[name + "/" + result.name] = program.read_scalar(result.name);
  }
  double take(const std::string& name) { return scalar_of(*values_.at(name)); }

 private:
  std::map<std::string, std::unique_ptr<Readback>> values_;
};

struct Squares {
  double with_fp8 = 0, in_bf16 = 0, difference = 0;
};

ShadowMetrics metrics_of(Scalars& scalars, const std::set<std::string>& kinds) {
  ShadowMetrics metrics{.loss = scalars.take("shadow/loss"), .bf16_loss = scalars.take("shadow_bf16/loss")};
  metrics.saturated = int64_t(scalars.take("shadow/" + std::string(kSaturated)));
  std::map<std::string, Squares> squares;
  Squares all;
  for (const std::string& kind : kinds) {
    auto take = [&](std::string_view what) { return scalars.take(fmt::format("shadow_bf16/{}.{}", what, kind)); };
    Squares& of = squares[kind] = {take("squares"), take("bf16_squares"), take("difference_squares")};
    all.with_fp8 += of.with_fp8, all.in_bf16 += of.in_bf16, all.difference += of.difference;
  }
  metrics.least = metrics.cosine = cosine_of(all.with_fp8, all.in_bf16, all.difference);
  for (const auto& [kind, of] : squares) {
    double cosine = metrics.cosines[kind] = cosine_of(of.with_fp8, of.in_bf16, of.difference);
    bool counts = of.in_bf16 > kLeastShare * all.in_bf16;  // not where rounding is all that is left of it
    if (!counts || (!metrics.least_kind.empty() && cosine >= metrics.least)) continue;
    metrics.least = cosine;
    metrics.least_kind = kind;
  }
  return metrics;
}

}  // namespace

bool has_shadow(const ResolvedRun& run) {
  if (run.asked.train.shadow_every == 0 || run.compile.precision != Precision::kFp8) return false;
  if (run.stages() > 1)
    user_error("[train.shadow_every] expected no pipeline, got {} stages; use 0 here, or mesh.pipe = 1", run.stages());
  return true;
}

double cosine_of(double squares, double should_be_squares, double difference_squares) {
  if (!std::isfinite(should_be_squares)) return std::nan("");
  if (!std::isfinite(squares) || !std::isfinite(difference_squares)) return 0;
  if (squares == 0 || should_be_squares == 0) return squares == should_be_squares ? 1 : 0;
  double product = (squares + should_be_squares - difference_squares) / 2;
  return std::clamp(product / (std::sqrt(squares) * std::sqrt(should_be_squares)), -1.0, 1.0);
}

std::vector<std::string> find_drifting(const std::set<std::string>& kinds, double bound,
                                       const std::function<double(const std::vector<std::string>&)>& cosine_without) {
  std::vector<std::string> without;
  std::set<std::string> left = kinds;
  while (!left.empty()) {
    double best = -3;
    std::string worst;
    for (const std::string& kind : left) {
      without.push_back(kind);
      double cosine = rank_of(cosine_without(without));
      without.pop_back();
      if (cosine > best) best = cosine, worst = kind;
    }
    without.push_back(worst);
    left.erase(worst);
    if (best >= bound) break;
  }
  return without;
}

std::string describe_fallback(const ShadowMetrics& shadow, const std::vector<std::string>& causes, int64_t step,
                              double bound) {
  return fmt::format(
      "after step {} the cosine of the gradients of {} with fp8 and in bf16 is {:.4f}, less than {:g} "
      "(train.shadow_bound): from now on the products of {} have bf16 (compile.fp8_except), and the run remembers it",
      step, shadow.least_kind, shadow.least, bound, fmt::join(causes, ", "));
}

Shadow::Shadow(Session& session, const Platform& platform, Backend& backend, const MeshRanks* ranks)
    : session_(session), platform_(platform), backend_(backend), ranks_(ranks), programs_(make({})) {}

// As with the step's programs, the rank that leads chooses kernels, and the others wait for that.
std::unique_ptr<Shadow::Programs> Shadow::make(const std::vector<std::string>& without) {
  ResolvedRun run = session_.resolved();
  run.compile.fp8_except.insert(run.compile.fp8_except.end(), without.begin(), without.end());
  ShadowStep shadow = compile_shadow(run, platform_);
  if (!leads(ranks_)) await_choices(ranks_, platform_.tuning, backend_);
  RunnerOptions options{.ranks = ranks_, .lender = &session_.runner()};
  StepRunner runner(shadow.step, backend_, session_.store(), options);
  if (ranks_ && leads(ranks_)) give_choices(ranks_, platform_.tuning, backend_);
  return std::unique_ptr<Programs>(new Programs{std::move(shadow), std::move(runner)});
}

ShadowMetrics Shadow::compare(Programs& programs, const Batch& batch, int64_t step) {
  const RunConfig& asked = session_.resolved().asked;
  float share = float(asked.model.window_share(step)), weight = loss_weight({&batch, 1});
  int32_t rng[2] = {random_seed(asked.train.seed), int32_t(step)};
  InputValues values{{"window_share", bytes_of(share)}, {"rng", bytes_of(rng)}};
  add_batch(values, batch, weight);
  Scalars scalars;
  programs.runner.run([&](Program& program, int64_t) { set_inputs(program, values); },
                      [&](const Program& program) { scalars.read(program); });
  return metrics_of(scalars, programs.shadow.kinds);
}

std::vector<std::string> Shadow::find_causes(const Batch& batch, int64_t step, double bound,
                                             const std::function<void(const std::function<void()>&)>& run) {
  return find_drifting(programs_->shadow.float8, bound, [&](const std::vector<std::string>& without) {
    std::unique_ptr<Programs> trial = make(without);
    ShadowMetrics metrics;
    run([&] { metrics = compare(*trial, batch, step); });
    return metrics.least;
  });
}

}  // namespace tokamak
