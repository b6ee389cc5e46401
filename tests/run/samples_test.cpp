// Samples of text during training: what they need is there before the first step.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "run/trainer.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

// The CPU; counts what is allocated, and says how much is free.
class CountingBackend : public Backend {
 public:
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return ++allocations, cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override { return cpu_->compile(graph, node); }
  void copy_in(void* to, const void* from, int64_t n) override { cpu_->copy_in(to, from, n); }
  void copy_out(void* to, const void* from, int64_t n) override { cpu_->copy_out(to, from, n); }
  void copy(void* to, const void* from, int64_t n) override { cpu_->copy(to, from, n); }
  int64_t used_bytes() const override { return cpu_->used_bytes(); }
  int64_t free_bytes() const override { return allocations == 0 ? 0 : free; }  // the step is not what is refused

  int allocations = 0;
  int64_t free = 0;  // after the first allocation; 0: not known

 private:
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

class Watcher : public TrainObserver {
 public:
  explicit Watcher(const CountingBackend& backend) : backend_(backend) {}
  void message(const std::string&) override {}
  void step(const StepMetrics&, int64_t, double) override {
    if (std::exchange(started_, true)) return;
    before_ = backend_.allocations;
  }
  void sample(int64_t, const std::string& text) override { samples.push_back(text); }
  void saved(int64_t, const std::filesystem::path&) override {}

  bool started() const { return started_; }
  int allocated_since_the_first_step() const { return backend_.allocations - before_; }
  std::vector<std::string> samples;

 private:
  const CountingBackend& backend_;
  bool started_ = false;
  int before_ = 0;
};

class Samples : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    config_ = test::tiny_config(folder_.path());
    config_.train.sample_every = 5;
    config_.train.sample_tokens = 40;
  }
  void train() {
    tokamak::train(config_, cpu::nominal_platform(), backend_, watcher_, [] { return false; });
  }

  TemporaryFolder folder_;
  RunConfig config_;
  CountingBackend backend_;
  Watcher watcher_{backend_};
};

TEST_F(Samples, AllocateNothingOnceTrainingHasBegun) {
  train();
  EXPECT_EQ(watcher_.samples.size(), 4u);
  EXPECT_EQ(watcher_.allocated_since_the_first_step(), 0);
}

TEST_F(Samples, ThatDoNotFitAreRefusedBeforeTheFirstStep) {
  backend_.free = 1000;
  expect_user_error([&] { train(); }, {"[memory] expected at most 1000", "for generating text", "sample_every=0"});
  EXPECT_FALSE(watcher_.started());
}

// Such ids are likely before much is learned.
TEST_F(Samples, OfIdsWithoutATokenEndNoRun) {
  config_.model.vocab = 2000;
  train();
  ASSERT_EQ(watcher_.samples.size(), 4u);
  EXPECT_NE(watcher_.samples[0].find("<|id "), std::string::npos) << watcher_.samples[0];
}

}  // namespace
}  // namespace tokamak
