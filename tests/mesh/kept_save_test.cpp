// States in the memory of several machines, which are folders here: what is whole when some of them are lost.
#include "checkpoint/kept_save.h"

#include <gtest/gtest.h>

#include <fstream>

#include "backend/ranks/inprocess.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/kept_parts.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak::test {
namespace {

namespace fs = std::filesystem;

CheckpointState state_of(int64_t step) { return {.step = step, .config_json = "{}"}; }

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Machines by the letters of `places`, each with a folder of that name.
class KeptSaves : public testing::Test {
 protected:
  struct Rank {
    Communicator& world;
    const RankMachines& machines;
    Communicator& links;
    fs::path folder;
    Exchange exchange;
  };
  template <typename Body>
  void on_machines(const std::string& places, const Body& body) const {
    run_ranks(int(places.size()), [&](Communicator& world) {
      std::vector<std::string> names;
      for (char place : places) names.emplace_back(1, place);
      RankMachines machines(names, names, world.rank());
      std::vector<int64_t> all;
      for (int rank = 0; rank < world.size(); ++rank) all.push_back(rank);
      std::unique_ptr<Communicator> links = world.split("links", all);
      fs::path folder = root_ / names[size_t(world.rank())];
      fs::create_directories(folder);
      body(Rank{world, machines, *links, folder, [&](std::string_view mine) { return world.exchange(mine); }});
    });
  }

  static RunConfig run_on(const MeshConfig& mesh) {
    RunConfig config = run_with_large_tables(mesh);
    config.train.batch = 12;
    return config;
  }

  /// Keeps states of these steps, and saves the last one as a checkpoint of `root_`/saved.
  void keep(const MeshConfig& mesh, const std::string& places, const std::vector<int64_t>& steps) const {
    RunConfig config = run_on(mesh);
    on_machines(places, [&](const Rank& rank) {
      MeshRanks ranks(step_mesh(config.mesh), rank.world);
      auto backend = cpu::make_backend();
      set_num_threads(1);
      Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, &ranks);
      session.initialise();
      const TensorStore& store = session.store();
      for (int64_t step : steps) {
        run_a_step(session, step);
        CompleteSave complete =
            begin_kept_save(rank.folder, state_of(step), store, rank.machines, rank.links, rank.exchange);
        ASSERT_TRUE(complete);
        std::vector<StateFile> files = state_files(store);
        complete(owned_slices(store, files), read_from(store, files));
      }
      save_in_slices(root_ / "saved", state_of(steps.back()), store, 1);
    });
  }

  /// Of machines that are left, or have come; what is told.
  std::string gather(const std::string& places, int64_t saved = -1) const {
    std::string said;
    on_machines(places, [&](const Rank& rank) {
      std::vector<std::string> warnings;
      gather_kept_parts(rank.folder, saved,
                        {rank.machines, rank.machines.count() > 1 ? &rank.links : nullptr, rank.exchange}, &warnings);
      if (rank.world.rank() != 0) return;
      for (const std::string& warning : warnings) said += warning + "\n";
    });
    return said;
  }

  void lose(const std::string& machine) const { fs::remove_all(root_ / machine); }
  fs::path kept(const std::string& machine, int64_t step) const {
    return checkpoints_folder(root_ / machine) / checkpoint_name(step);
  }
  size_t number_kept(const std::string& machine) const {
    return list_checkpoints(checkpoints_folder(root_ / machine)).size();
  }
  void expect_whole(const std::string& machine, int64_t step) const {
    EXPECT_NO_THROW(verify_checkpoint(kept(machine, step))) << machine;
    for (const char* file : {kModelFile, kOptimizerFile})
      EXPECT_TRUE(text_of(kept(machine, step) / file) == text_of(kept("saved", step) / file)) << machine << " " << file;
    EXPECT_EQ(number_kept(machine), 1u);
  }

  TemporaryFolder folder_;
  fs::path root_ = folder_.path();
};

TEST_F(KeptSaves, OfTwoMachinesEachHasAll) {
  for (const MeshConfig& mesh : {MeshConfig{.data = 4, .zero = 1}, MeshConfig{.data = 2, .tensor = 2, .zero = 3},
                                 MeshConfig{.pipe = 2, .data = 2, .zero = 1}}) {
    keep(mesh, "aabb", {3, 6});
    for (const char* machine : {"a", "b"}) expect_whole(machine, 6);
    lose("b");
    EXPECT_EQ(gather("aa"), "");
    expect_whole("a", 6);
  }
}

TEST_F(KeptSaves, OfThreeMachinesAnyTwoHaveAllTogether) {
  for (const std::string lost : {"a", "b", "c"}) {
    keep({.data = 3, .zero = 3}, "abc", {3, 6});
    EXPECT_ANY_THROW(verify_checkpoint(kept("a", 6)));
    lose(lost);
    std::string left = "abc";
    left.erase(left.find(lost), 1);
    EXPECT_EQ(gather(left), "");
    for (char machine : left) expect_whole(std::string(1, machine), 6);
    for (char machine : left) lose(std::string(1, machine));
  }
}

TEST_F(KeptSaves, AMachineThatIsNewGetsAll) {
  keep({.data = 3, .zero = 1}, "aab", {3});
  lose("a");
  EXPECT_EQ(gather("abb"), "");
  for (const char* machine : {"a", "b"}) expect_whole(machine, 3);
}

TEST_F(KeptSaves, AMachineThatHasAnOlderOneGetsTheNewest) {
  keep({.data = 2, .zero = 1}, "ad", {3});
  keep({.data = 3, .zero = 1}, "abc", {6});
  EXPECT_EQ(gather("abcd"), "");
  for (const char* machine : {"a", "b", "c", "d"}) expect_whole(machine, 6);
}

TEST_F(KeptSaves, WhatIsLostWithTwoNeighboursIsTold) {
  keep({.data = 3, .zero = 1}, "abc", {3});
  lose("a");
  lose("b");
  std::string said = gather("c");
  EXPECT_NE(said.find("the state after step 3 cannot be had from memory: what rank 0 had is on none of the machines "
                      "that are left (it was on a and the machine after it)"),
            std::string::npos)
      << said;
  EXPECT_EQ(number_kept("c"), 0u);
}

TEST_F(KeptSaves, WhatIsNoNewerThanACheckpointIsForgotten) {
  keep({.data = 2, .zero = 1}, "ab", {3});
  EXPECT_EQ(gather("ab", 3), "");
  for (const char* machine : {"a", "b"}) EXPECT_EQ(number_kept(machine), 0u);
}

TEST_F(KeptSaves, AMachineThatCannotWriteEndsTheSaveOnAll) {
  keep({.data = 2, .zero = 1}, "ab", {3});
  fs::remove_all(root_ / "b");
  std::ofstream(root_ / "b") << "a file";
  RunConfig config = run_on({.data = 2, .zero = 1});
  int told = 0;
  std::mutex mutex;
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(step_mesh(config.mesh), world);
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Session session = make_session(config, cpu::nominal_platform(1), *backend, 0, &ranks);
    RankMachines machines({"a", "b"}, {"a", "b"}, world.rank());
    fs::path folder = root_ / (world.rank() == 0 ? "a" : "b");
    expect_user_error(
        [&] {
          begin_kept_save(folder, state_of(6), session.store(), machines, world,
                          [&](std::string_view mine) { return world.exchange(mine); });
        },
        {"step 6 could not be saved", "Rank 1: "});
    std::lock_guard lock(mutex);
    ++told;
  });
  EXPECT_EQ(told, 2);
  EXPECT_EQ(number_kept("a"), 1u);
}

}  // namespace
}  // namespace tokamak::test
