// Who is told of a training run and says nothing.
#pragma once

#include "run/train_observer.h"

namespace tokamak::test {

class QuietObserver : public TrainObserver {
 public:
  void message(const std::string&) override {}
  void step(const StepMetrics&, int64_t, double) override {}
  void sample(int64_t, const std::string&) override {}
  void saved(int64_t, const std::filesystem::path&) override {}
};

}  // namespace tokamak::test
