// Runs a plan on its streams in a random order of all that its waits allow, on a memory of tags. A launch takes time:
// between its start and its end its outputs hold nobody's value, and its inputs must stay.
#pragma once

#include "tests/plan/tagged_memory.h"

#include <random>

namespace tokamak::testing {

class InterleavedRun {
 public:
  InterleavedRun(const Plan& plan, uint32_t seed)
      : plan_(plan), roots_(find_roots(plan.graph)), memory_(plan), finished_(plan.launches.size(), false),
        queue_(plan.streams.size()), at_(plan.streams.size(), 0), running_(plan.streams.size(), false), random_(seed) {
    for (size_t i = 0; i < plan.launches.size(); ++i) queue_[size_t(plan.launches[i].stream)].push_back(int(i));
    for (size_t stream = 0; stream < queue_.size(); ++stream)
      favour_.push_back(std::uniform_real_distribution<>(0.02, 0.98)(random_));
  }

  void run() {
    for (size_t done = 0; done < plan_.launches.size();) {
      std::vector<double> weights = favour_;
      for (size_t stream = 0; stream < weights.size(); ++stream) weights[stream] *= may_go_on(stream);
      ASSERT_GT(*std::max_element(weights.begin(), weights.end()), 0) << "all streams wait";
      size_t stream = std::discrete_distribution<size_t>(weights.begin(), weights.end())(random_);
      done += running_[stream];
      running_[stream] ? end(stream) : begin(stream);
      if (::testing::Test::HasFatalFailure()) return;
    }
    expect_end(plan_, memory_);
  }

 private:
  static constexpr ValueId kBusy = -2;

  bool ended(size_t stream) const { return at_[stream] == queue_[stream].size(); }
  const Launch& launch(size_t stream) const { return plan_.launches[size_t(queue_[stream][at_[stream]])]; }
  const Node& node(size_t stream) const { return plan_.graph.nodes()[size_t(launch(stream).node)]; }

  bool may_go_on(size_t stream) const {
    if (ended(stream)) return false;
    const std::vector<int>& after = launch(stream).after;
    return running_[stream] ||
           std::all_of(after.begin(), after.end(), [&](int before) { return finished_[size_t(before)]; });
  }

  bool shares(ValueId value, const ValueIds& others) const {
    return std::any_of(others.begin(), others.end(), [&](ValueId other) { return share_bytes(plan_, value, other); });
  }

  void begin(size_t stream) {
    const Node& n = node(stream);
    for (ValueId input : n.inputs)
      ASSERT_TRUE(memory_.holds(input, roots_[size_t(input)]))
          << "node " << launch(stream).node << " begins without %" << input;
    for (ValueId output : n.outputs)
      if (!shares(output, n.inputs)) memory_.write(output, kBusy);
    running_[stream] = true;
  }

  void end(size_t stream) {
    const Node& n = node(stream);
    for (ValueId input : n.inputs)
      ASSERT_TRUE(shares(input, n.outputs) || memory_.holds(input, roots_[size_t(input)]))
          << "node " << launch(stream).node << " loses %" << input;
    for (ValueId output : n.outputs) {
      ASSERT_TRUE(shares(output, n.inputs) || memory_.holds(output, kBusy))
          << "node " << launch(stream).node << " does not write %" << output << " alone";
      memory_.write(output, output);
    }
    finished_[size_t(queue_[stream][at_[stream]])] = true;
    running_[stream] = false;
    ++at_[stream];
  }

  const Plan& plan_;
  ValueIds roots_;
  TaggedMemory memory_;
  std::vector<bool> finished_;           // by launch
  std::vector<std::vector<int>> queue_;  // by stream
  std::vector<size_t> at_;
  std::vector<bool> running_;
  std::mt19937 random_;
  std::vector<double> favour_;  // by stream
};

}  // namespace tokamak::testing
