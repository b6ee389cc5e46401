#include "run/choices_file.h"

#include "compile/resolved_run.h"
#include "tests/support/priced_device.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

class ChoicesFileTest : public testing::Test {
 protected:
  ResolvedRun run_of(int64_t batch) const {
    RunConfig config;
    config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 128};
    config.train.batch = batch;
    config.compile.precision = Precision::kFp32;
    return resolve(config, platform_.target);
  }

  // A start and its first save, on a device on which such kernels take a second; what was chosen.
  Tuning start(int64_t batch, bool goes_on, const std::string& slow = "") {
    test::PricedDevice device({{slow, 1.0}});
    test::QuietObserver observer;
    ChoicesFile file(folder_.path());
    Tuning tuning = file.tune(run_of(batch), platform_, device, goes_on, observer).tuning;
    file.save(tuning, device);
    compiled_ = device.compiled;
    return tuning;
  }

  TemporaryFolder folder_;
  Platform platform_{Target{.matmul_argument = true, .matmul_operand = true}};
  int compiled_ = 0;  // by the last start, to be measured
};

TEST_F(ChoicesFileTest, HasThoseOfAllPhases) {
  Tuning first = start(2, false, "matmul+gelu_grad");
  EXPECT_FALSE(first.slow_forms.empty());
  start(4, true);
  EXPECT_GT(compiled_, 0);
  EXPECT_EQ(start(2, true).slow_forms, first.slow_forms) << "from a checkpoint of the first phase";
  EXPECT_EQ(compiled_, 0);
  start(4, true);
  EXPECT_EQ(compiled_, 0) << "and back";
}

TEST_F(ChoicesFileTest, ARunThatBeginsAnewHasItsOwn) {
  start(2, false, "matmul+gelu_grad");
  start(4, false);
  EXPECT_TRUE(start(2, true).slow_forms.empty());
  EXPECT_GT(compiled_, 0);
}

}  // namespace
}  // namespace tokamak
