// States that are kept in memory beside the checkpoints: what a run goes on from, and to the same bits.
#include "run/memory_states.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "checkpoint/checkpoint_folder.h"
#include "passes/step_mesh.h"
#include "run/trainer.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 8;

class KeptStates : public testing::TestWithParam<MeshConfig> {
 protected:
  struct Listener : test::QuietObserver {
    void message(const std::string& text) override { said += text + "\n"; }
    std::string said;
  };

  void SetUp() override {
    test::make_tiny_data(folder_.path());
    memory_ = {.folder = folder_ / "memory", .every = 3};
    fs::create_directory(memory_.folder);
  }

  RunConfig config(const std::string& out) const {
    RunConfig config = test::tiny_config(folder_.path());
    config.threads = 1;
    config.mesh = GetParam();
    config.mesh.slots = 2;
    config.train.total_batch = 64;
    config.train.out = (folder_ / out).string();
    config.train.steps = kSteps;
    return config;
  }

  /// What the first rank said.
  static std::string train(const RunConfig& config, const MemoryStates& memory) {
    std::string said;
    auto one = [&](const MeshRanks* ranks) {
      auto backend = cpu::make_backend();
      set_num_threads(1);
      Listener listener;
      tokamak::train(
          config, cpu::nominal_platform(1), *backend, listener, [] { return false; }, ranks, nullptr, memory);
      if (leads(ranks)) said = listener.said;
    };
    Mesh mesh = step_mesh(config.mesh);
    if (mesh.num_ranks() == 1) return one(nullptr), said;
    run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
      MeshRanks ranks(mesh, world);
      one(&ranks);
    });
    return said;
  }

  /// A run that has lost its processes, and all that it had saved.
  RunConfig broken_run() const {
    RunConfig broken = config("broken");
    train(broken, memory_);
    fs::remove_all(checkpoints_folder(broken.train.out));
    return broken;
  }
  void expect_right(const RunConfig& run) const {
    train(config("straight"), {});
    test::expect_same(test::read_run(config("straight").train.out, kSteps), test::read_run(run.train.out, kSteps));
  }
  /// Of step 3 or 6: where that of step 3 was still being written, there is no other.
  fs::path newest() const {
    std::vector<fs::path> all = list_checkpoints(checkpoints_folder(memory_.folder));
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }

  TemporaryFolder folder_;
  MemoryStates memory_;
};

TEST_P(KeptStates, ARunGoesOnFromTheNewest) {
  RunConfig broken = broken_run();
  fs::path kept = newest();
  EXPECT_GT(noted_step_seconds(kept), 0);
  std::string said = train(broken, memory_);
  std::string expected = fmt::format("resuming after step {} from {}", step_of_checkpoint(kept), kept.string());
  EXPECT_NE(said.find(expected), std::string::npos) << said;
  expect_right(broken);
}

TEST_P(KeptStates, ADamagedOneIsPassedOver) {
  RunConfig broken = broken_run();
  fs::path file = newest() / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  std::string said = train(broken, memory_);
  EXPECT_NE(said.find("warning: "), std::string::npos) << said;
  EXPECT_EQ(said.find("resuming"), std::string::npos) << said;
  expect_right(broken);
}

TEST_P(KeptStates, ASaveThatIsAsNewIsTaken) {
  RunConfig broken = config("broken");
  broken.train.steps = 6;
  train(broken, memory_);
  train(broken, {.folder = memory_.folder, .every = 1});
  broken.train.steps = kSteps;
  std::string said = train(broken, memory_);
  EXPECT_NE(said.find("resuming after step 6 from " + broken.train.out), std::string::npos) << said;
}

TEST_P(KeptStates, WhereThereIsNoRoomTheRunGoesOnWithoutThem) {
  RunConfig run = config("broken");
  std::string said = train(run, {.folder = "/proc/absent", .every = 3});
  EXPECT_NE(said.find("no states are kept in memory any more (--memory_every): "), std::string::npos) << said;
  expect_right(run);
}

TEST_P(KeptStates, AreForgotten) {
  RunConfig broken = broken_run();
  forget_kept_states(memory_);
  std::string said = train(broken, memory_);
  EXPECT_EQ(said.find("resuming"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Meshes, KeptStates,
                         testing::Values(MeshConfig{.data = 1}, MeshConfig{.data = 2}, MeshConfig{.data = 2, .zero = 3},
                                         MeshConfig{.pipe = 2, .data = 1}));

}  // namespace
}  // namespace tokamak
