// A fixture for tests of whole runs in one process: data, a configuration, and a run that ends where it is to.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "base/parallel.h"
#include "config/config.h"
#include "run/trainer.h"
#include "tests/e2e/listener.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak::test {

class SmallRun : public testing::Test {
 protected:
  static constexpr int64_t kSteps = 20;

  explicit SmallRun(int threads = 2) { set_num_threads(threads); }
  void SetUp() override { make_tiny_data(folder_.path()); }

  /// Of kSteps, in the folder <folder_>/out.
  RunConfig config(const std::string& out) const {
    RunConfig config = tiny_config(folder_.path());
    config.train.out = (folder_ / out).string();
    return config;
  }

  /// Trains until `stop_after` steps were submitted here (0: to the end). What it says replaces what the run before
  /// said.
  TrainSummary run(const RunConfig& config, int64_t stop_after = 0, const Platform& platform = cpu::nominal_platform(),
                   StepWatcher* watcher = nullptr) {
    listener_.messages.clear();
    int64_t asked = -1;  // before the first step, too
    auto stop = [&] { return ++asked > 0 && asked == stop_after; };
    return train(config, platform, *backend_, listener_, stop, nullptr, watcher);
  }
  bool was_told(const std::string& text) const { return listener_.messages.find(text) != std::string::npos; }

  TemporaryFolder folder_;
  std::unique_ptr<Backend> backend_ = cpu::make_backend();
  Listener listener_;
};

}  // namespace tokamak::test
