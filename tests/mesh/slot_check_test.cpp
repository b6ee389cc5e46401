// A flipped bit on one rank is found when the next step is checked, and the run goes back to one that was.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/file.h"
#include "base/parallel.h"
#include "checkpoint/checkpoint_folder.h"
#include "passes/step_mesh.h"
#include "run/slot_check.h"
#include "run/step_queue.h"
#include "run/step_watcher.h"
#include "run/trainer.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

constexpr int64_t kEvery = 4, kSteps = 12;

void flip(Session& session, const std::string& name) { static_cast<uint32_t*>(session.store().data(name))[5] ^= 1; }

/// After the n-th run of micro_batch, counted from 1, flips a bit of a gradient that it left.
class GradientFault : public WorkObserver {
 public:
  GradientFault(Session& session, int run, std::string name) : session_(session), runs_(run), name_(std::move(name)) {}
  void begin(const Work& work) override {
    under_way_.push_back(work.kind == Work::Kind::kRun && work.plan->graph.name() == "micro_batch");
  }
  void end() override {
    bool is_run = under_way_.back();
    under_way_.pop_back();
    if (is_run && --runs_ == 0) flip(session_, name_);
  }

 private:
  Session& session_;
  int runs_;
  std::string name_;
  std::vector<bool> under_way_;
};

struct Fault {
  int64_t step = 0;  // before it; 0: none
  std::string tensor;
  int run = 0;  // of a gradient: behind this run of micro_batch
};

class Planted : public StepWatcher {
 public:
  explicit Planted(Fault fault) : fault_(std::move(fault)) {}
  void step_begins(int64_t step, const WatchedRun& run) override {
    if (step != fault_.step) return;
    run.queue.run([&] {
      if (fault_.run == 0) return flip(run.session, fault_.tensor);
      gradient_.emplace(run.session, fault_.run, fault_.tensor);
      run.session.observe(&*gradient_);
    });
  }
  void data_read() override {}
  void step_submitted() override {}

 private:
  Fault fault_;
  std::optional<GradientFault> gradient_;
};

class SlotChecks : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  RunConfig config(const std::string& out) const {
    RunConfig config = test::tiny_config(folder_.path());
    config.threads = 1;
    config.train.out = (folder_ / out).string();
    config.train.steps = kSteps;
    config.train.checkpoint_every = kEvery / 2;
    config.train.keep_checkpoints = 3;
    config.train.verify_every = kEvery;
    config.train.batch = 8;
    config.mesh.data = 2;
    config.mesh.slots = 4;
    return config;
  }
  static void train(const RunConfig& config, const Fault& fault = {}) {
    Mesh mesh = step_mesh(config.mesh);
    run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
      MeshRanks ranks(mesh, world);
      auto backend = cpu::make_backend();
      set_num_threads(1);
      test::QuietObserver observer;
      Planted planted(ranks.rank() == 1 ? fault : Fault());
      tokamak::train(
          config, cpu::nominal_platform(1), *backend, observer, [] { return false; }, &ranks, &planted);
    });
  }
  std::vector<int64_t> saved(const std::string& out) const {
    std::vector<int64_t> steps;
    for (const auto& path : list_checkpoints(checkpoints_folder(folder_ / out)))
      steps.push_back(step_of_checkpoint(path));
    return steps;
  }
  std::string last(const std::string& out, const char* file) const {
    return read_file(checkpoints_folder(folder_ / out) / checkpoint_name(kSteps) / file);
  }
  void expect_found(const Fault& fault, const std::vector<std::string>& words) const {
    try {
      train(config("run"), fault);
      FAIL() << "nothing was found";
    } catch (const CorruptedStep& error) {
      for (const std::string& word : words)
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
    EXPECT_EQ(saved("run"), (std::vector<int64_t>{2, 4}));  // it is found in step 8, and 6 is suspect
    train(config("run"));
    train(config("straight"));
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(last("run", file) == last("straight", file)) << file;
  }

  TemporaryFolder folder_;
};

TEST_F(SlotChecks, AFlippedBitOfAWeightIsFound) {
  expect_found({5, "h.1.mlp.c_fc.weight"},
               {"after step 8 rank 1 on ", " has other bits than rank 0 on ", "the run goes back to step 4"});
}

TEST_F(SlotChecks, AFlippedBitOfAMomentIsFound) {
  expect_found({8, "adam.v.h.0.ln_1.weight"}, {"after step 8 rank 1 on ", "the run goes back to step 4"});
}

// In step 8, of the second check, first slots are computed again, before any other.
TEST_F(SlotChecks, AFlippedBitOfAGradientIsFound) {
  expect_found({8, "grad.h.0.attn.c_attn.weight", 2},
               {"in step 8 rank 0 on ", " computed a slot of rank 1 on ",
                " again and got other bits of grad.h.0.attn.c_attn.weight;", "goes back to step 4"});
}

TEST_F(SlotChecks, AFlippedBitOfTheOtherComputationIsFound) {
  expect_found({8, "grad.h.0.attn.c_attn.weight", 1}, {"in step 8 rank 1 on ", " computed a slot of rank 0 on "});
}

TEST_F(SlotChecks, CheckedStepsHaveTheBitsOfOthers) {
  RunConfig checked = config("checked"), plain = config("plain");
  plain.train.verify_every = 0;
  for (const RunConfig* run : {&checked, &plain}) train(*run);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_TRUE(last("checked", file) == last("plain", file)) << file;
}

TEST_F(SlotChecks, HoldWithDropoutOnMoreRanksAndAxes) {
  for (MeshConfig mesh : {MeshConfig{.data = 4, .slots = 8}, MeshConfig{.data = 2, .zero = 1, .slots = 4},
                          MeshConfig{.data = 2, .tensor = 2, .slots = 8}}) {
    RunConfig run = config("run");
    run.train.out += std::to_string(mesh.data * mesh.tensor + mesh.zero);
    run.model.dropout = 0.1;
    run.mesh = mesh;
    EXPECT_NO_THROW(train(run));
  }
}

}  // namespace
}  // namespace tokamak
