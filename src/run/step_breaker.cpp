#include "run/step_breaker.h"

namespace tokamak {
namespace {

constexpr double kMostAhead = 0.5;  // seconds of work that a device is given at a time

}  // namespace

void StepBreaker::begin(const Work& work) {
  if (work.kind != Work::Kind::kLaunch || session_.is_torn()) return;
  if (stops_()) throw StepBroken();
  asked_seconds_ += work.plan->launches[size_t(work.index)].seconds;
  if (asked_seconds_ < kMostAhead) return;
  backend_.synchronize();
  asked_seconds_ = 0;
}

}  // namespace tokamak
