// Who listens to a training run: keeps what it says, and ends it as a crash would, with nothing saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/support/quiet_observer.h"

namespace tokamak::test {

class Listener : public QuietObserver {
 public:
  void message(const std::string& text) override { messages += text + "\n"; }
  void step(const StepMetrics& metrics, int64_t, double) override {
    if (metrics.step == throw_at_step) throw std::runtime_error("killed");
  }
  void sample(int64_t, const std::string&) override { ++samples; }
  void saved(int64_t step, const std::filesystem::path&) override {
    if (step == throw_at_saved) throw std::runtime_error("killed");
  }

  int64_t throw_at_step = 0, throw_at_saved = 0;
  int samples = 0;
  std::string messages;
};

}  // namespace tokamak::test
