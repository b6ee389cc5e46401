// Runs a plan on two streams in a random order of all that its waits allow, on a memory of tags. A launch takes time:
// between its start and its end its outputs hold nobody's value, and its inputs must stay.
#pragma once

#include "tests/plan/tagged_memory.h"

#include <random>

namespace tokamak::testing {

class TwoStreams {
 public:
  TwoStreams(const Plan& plan, uint32_t seed)
      : plan_(plan), roots_(find_roots(plan.graph)), memory_(plan), finished_(plan.launches.size(), false),
        random_(seed), favour_(std::uniform_real_distribution<>(0.02, 0.98)(random_)) {
    for (size_t i = 0; i < plan.launches.size(); ++i) queue_[size_t(plan.launches[i].stream)].push_back(int(i));
  }

  void run() {
    while (!ended(0) || !ended(1)) {
      size_t stream = std::bernoulli_distribution(favour_)(random_) ? 1 : 0;
      if (!may_go_on(stream)) stream = 1 - stream;
      ASSERT_TRUE(may_go_on(stream)) << "each stream waits for the other";
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
    return running_[stream] || launch(stream).after < 0 || finished_[size_t(launch(stream).after)];
  }

  bool shares(ValueId value, const std::vector<ValueId>& others) const {
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
  std::vector<ValueId> roots_;
  TaggedMemory memory_;
  std::vector<bool> finished_;  // by launch
  std::vector<int> queue_[2];
  size_t at_[2] = {0, 0};
  bool running_[2] = {false, false};
  std::mt19937 random_;
  double favour_;  // of stream 1
};

}  // namespace tokamak::testing
