#include "cli/train_profile.h"

#include <algorithm>

#include "base/error.h"
#include "cli/command.h"
#include "config/train_ramp.h"

namespace tokamak {
namespace {

constexpr int64_t kWarmup = 2;  // steps, for when it begins with the first one

}  // namespace

void visit(FieldList& v, TrainProfile& c) {
  v("at", c.at, "step with which it begins; 0: no profile", at_least(0));
  v("steps", c.steps, "steps that are profiled; as many with nobody observing come before and behind them",
    between(1, 1000));
  visit(v, c.output);
}

void check_profile(const TrainProfile& profile, const GivenOptions& given, const RunConfig& config) {
  auto key = std::find_if(given.keys.begin(), given.keys.end(),
                          [](const std::string& name) { return name.starts_with("profile."); });
  if (profile.at == 0 && key != given.keys.end())
    user_error("[--profile.at] expected the step that the profile begins with, got none beside --{}", *key);
  if (profile.at == 0) return;
  check_files(profile.output);
  int64_t last = profile.at - 1 + kWarmup + (is_gpu_device(config) ? 4 : 3) * profile.steps;
  if (last > config.train.steps)
    user_error(
        "[--profile.at] expected a run of at least {} steps, for a profile of {} from step {} on and those that it is "
        "compared with, got train.steps = {}; lower --profile.at or --profile.steps",
        last, profile.steps, profile.at, config.train.steps);
  if (RampPhase phase = ramp_phase(config, profile.at - 1); phase.until < last)
    user_error(
        "[--profile.at] expected the {} steps of a profile, and those that it is compared with, in one phase of "
        "train.ramp, got one that ends at step {}; begin the profile behind it",
        profile.steps, phase.until);
}

AttachedProfile::AttachedProfile(const TrainProfile& profile, const GivenOptions& given, const RankContext& rank,
                                 std::function<void(const std::string&)> say)
    : profile_(profile), given_(given), machine_(rank.machine), say_(std::move(say)),
      watcher_(profile.at,
               {.steps = {.steps = profile.steps, .warmup = kWarmup},
                .is_gpu = rank.machine.is_gpu,
                .traces = !profile.output.trace.empty()},
               *rank.machine.backend, rank.ranks,
               [this](ProfileReport& report, int64_t first) { show(report, first); }) {}

void AttachedProfile::show(ProfileReport& report, int64_t first) {
  shown_ = true;
  say_(fmt::format("--- profile of steps {} to {} ---", first, first + profile_.steps - 1));
  try {
    say_(write_profile(profile_.output, machine_, typed_line("train", given_.arguments), report) + "---");
  } catch (const UserError& error) {
    say_(fmt::format("warning: {}", error.what()));
  }
}

void AttachedProfile::end() const {
  if (profile_.at > 0 && !shown_)
    say_(fmt::format("no profile: not all of its steps, from {} on, were taken in this start of the run", profile_.at));
}

}  // namespace tokamak
