// A profile as text for the terminal and as JSON. Tests: tests/profile/profile_run_test.cpp.
#pragma once

#include "compile/resolved_run.h"
#include "graph/target.h"
#include "profile/kernel_profile.h"
#include "profile/step_picture.h"

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// What a rank tells of its steps; seconds are of all of them together.
struct RankSummary {
  int64_t steps = 0;
  double seconds = 0, plain_seconds = 0, unrecorded_seconds = 0;  // as in StepProfile
  TimeBreakdown breakdown;

  double step_ms() const { return 1e3 * seconds / double(steps); }
  double plain_ms() const { return 1e3 * plain_seconds / double(steps); }
  double unrecorded_ms() const { return 1e3 * unrecorded_seconds / double(steps); }
  double slowdown() const { return seconds / unrecorded_seconds - 1; }
};

RankSummary summary_of(const StepProfile& profile);

/// "observing takes +1.2%"; where the observed steps were the faster ones, other work of the machine hides it.
std::string describe_slowdown(const RankSummary& rank);

/// As ranks tell each other: one line of JSON, and what was put into it.
std::string to_text(const RankSummary& summary);
RankSummary rank_summary(std::string_view text);

/// What the rank that leads knows in the end.
struct ProfileReport {
  ResolvedRun resolved;
  Target target;
  std::string versions;  // of driver and libraries; empty: the CPU
  std::string command;
  std::string date;
  double predicted_seconds = 0;          // of a step
  double predicted_exposed_seconds = 0;  // of that, of communication
  std::vector<RankSummary> ranks;        // in order of ranks
  std::vector<KernelProfile> kernels;    // of rank 0
  std::string clock;                     // how its device's times are known
  SensorSummary sensors;                 // of its device
  StepTimeline timeline;                 // of rank 0, as the next
  MemoryPicture memory;                  // of the program that needs most
  std::vector<std::string> trace;        // by rank, where it was asked for: gather_trace()
};

/// Predicted seconds of a step by WorkClass, of rank 0: sums over its kernels, of communication what is exposed.
std::array<double, kWorkClasses.size()> predicted_work(const ProfileReport& report);

/// The tables; at most so many lines of kernels.
std::string format_profile(const ProfileReport& report, size_t max_kernels);

std::string profile_json(const ProfileReport& report);

}  // namespace tokamak
