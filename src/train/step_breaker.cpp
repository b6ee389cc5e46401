#include "train/step_breaker.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr double kMostAhead = 0.5;  // seconds of work that a device is given at a time

bool outlives_step(const Argument& argument) {
  return argument.kind != Argument::Kind::kInput && !is_scratch(argument.layout.role);
}

}  // namespace

bool outlives_step(const Work& work) {
  const Graph& graph = work.plan->graph;
  if (work.kind == Work::Kind::kCopyBack)
    return outlives_step(*graph.argument_of(work.plan->copies[size_t(work.index)].target));
  if (work.kind != Work::Kind::kLaunch) return false;
  const Node& node = graph.nodes()[size_t(work.plan->launches[size_t(work.index)].node)];
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
    ValueId argument = work.plan->locations[size_t(output)].argument;
    return argument != kNoValue && outlives_step(*graph.argument_of(argument));
  });
}

void StepBreaker::begin_step() {
  asked_seconds_ = 0;
  writes_ = false;
}

void StepBreaker::begin(const Work& work) {
  if (work.kind != Work::Kind::kLaunch && work.kind != Work::Kind::kCopyBack) return;
  writes_ = writes_ || outlives_step(work);
  if (writes_) return;
  if (stops_()) throw StepBroken();
  asked_seconds_ += work.kind == Work::Kind::kLaunch ? work.plan->launches[size_t(work.index)].seconds : 0;
  if (asked_seconds_ < kMostAhead) return;
  backend_.synchronize();
  asked_seconds_ = 0;
}

}  // namespace tokamak
