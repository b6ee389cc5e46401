// Which checkpoint training goes on well from, by the loss of the step behind it: a state may be finite and lost all
// the same. Tests: tests/checkpoint/known_good_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak {

struct StepMetrics;

/// Where losses lie, and so where the next one may. Upwards it does not follow them: what has left it stays outside.
struct LossBand {
  int64_t losses = 0;  // that it has seen
  double mean = 0;     // of the last ones, older ones counting less
  double lowest = 0;   // that the mean has been
  double change = 0;   // mean distance of two losses that follow each other
  double last = 0;

  bool operator==(const LossBand&) const = default;

  /// At most a tenth, or four such distances, above the lowest mean; every number, where there was none before.
  bool holds(double loss) const;
  void add(double loss);
};

/// What is kept of it in a checkpoint.
struct KnownGoodState {
  int64_t step = 0;  // of the newest checkpoint that is known to be good; 0: none is
  LossBand band;

  bool operator==(const KnownGoodState&) const = default;
};

class KnownGood {
 public:
  /// `begin`: as the checkpoint of step `saved` has it, which the run goes on from. One that has seen no losses, of an
  /// earlier version, is taken for good.
  explicit KnownGood(const KnownGoodState& begin = {}, int64_t saved = 0) : state_(begin), saved_(saved) {
    if (state_.band.losses == 0) state_.step = saved;
  }

  const KnownGoodState& state() const { return state_; }

  /// A checkpoint of this step is there.
  void saved(int64_t step) { saved_ = step; }

  /// Takes in a step, whose loss and gradients are those of the state before it. True when they show that this state
  /// is good, and it is the newest checkpoint.
  bool add(const StepMetrics& metrics);

 private:
  KnownGoodState state_;
  int64_t saved_ = 0;
};

}  // namespace tokamak
