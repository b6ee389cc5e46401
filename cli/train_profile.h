// `tokamak train --profile.at=STEP`: a profile of some steps of a run that goes on.
#pragma once

#include <functional>
#include <string>

#include "cli/profile_output.h"
#include "cli/ranks.h"
#include "config/command_line.h"
#include "profile/run_profiler.h"

namespace tokamak {

struct TrainProfile {
  int64_t at = 0;  // 0: none
  int64_t steps = ProfileOptions().steps;
  ProfileOutput output;
};
void visit(FieldList& v, TrainProfile& c);

/// UserError for what can be told before the work: options without a step, a run too short, files that cannot be
/// written.
void check_profile(const TrainProfile& profile, const GivenOptions& given, const RunConfig& config);

/// The profile that a rank is asked for; what is passed must outlive it. What goes wrong with its files ends no
/// training.
class AttachedProfile {
 public:
  /// `say` shows text on the rank that leads.
  AttachedProfile(const TrainProfile& profile, const GivenOptions& given, const RankContext& rank,
                  std::function<void(const std::string&)> say);
  AttachedProfile(const AttachedProfile&) = delete;
  AttachedProfile& operator=(const AttachedProfile&) = delete;

  /// Null where none is asked for.
  StepWatcher* watcher() { return profile_.at > 0 ? &watcher_ : nullptr; }

  /// On the rank that leads, when the run has ended: says so if not all steps were there.
  void end() const;

 private:
  void show(ProfileReport& report, int64_t first);

  const TrainProfile& profile_;
  const GivenOptions& given_;
  const Machine& machine_;
  std::function<void(const std::string&)> say_;
  bool shown_ = false;
  RunProfiler watcher_;
};

}  // namespace tokamak
