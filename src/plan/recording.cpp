#include "plan/recording.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr double kHostSeconds = 10e-6;  // of a launch and its events, on a slow host
constexpr double kHostShare = 0.5;      // of a step, so that the device never waits for the host

bool has_collectives_beside(const Plan& plan) {
  return std::any_of(plan.streams.begin(), plan.streams.end(), [](const PlannedStream& s) { return s.resource != 0; });
}

}  // namespace

bool is_to_record(const Plan& plan) {
  if (!std::all_of(plan.streams.begin(), plan.streams.end(), [](const PlannedStream& s) { return s.ends_with_run; }))
    return false;
  return !has_collectives_beside(plan) || double(plan.launches.size()) * kHostSeconds > kHostShare * plan.seconds;
}

}  // namespace tokamak
