#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_state.h"
#include "checkpoint/safetensors.h"
#include "config/model_config.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/nested_lists.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

CheckpointState state_of(int64_t step) {
  return {.step = step,
          .tokens = 24 * step,
          .data_position = 4 * step,
          .seed = 1337,
          .config_json = R"({"model":{"layers":1,"dropout":0.1},"b":1,"a":6e-4})",
          .tokenizer = "xxh64:abc"};
}

std::vector<std::string> entries_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_tensors(const HostStore& a, const HostStore& b) {
  for (const std::string& name : a.store.names()) {
    if (is_scratch(a.store.spec(name).role)) continue;
    EXPECT_EQ(a.read(name), b.read(name)) << name;
  }
}

// States that an optimizer keeps in another type and shape than its parameters'.
TEST(Checkpoint, GivesBackStatesOfOtherTypes) {
  TemporaryFolder out;
  HostStore saved, loaded;
  for (HostStore* store : {&saved, &loaded}) {
    store->fill(1);
    store->add_state("rows.w", {DType::kBF16, {3}});
  }
  const uint16_t bits[] = {0x3F80, 0x4049, 0xBE12};
  saved.store.write("rows.w", bits, sizeof bits);
  fs::path path = save_checkpoint(out.path(), state_of(10), saved.store, 2);
  load_optimizer(path, loaded.store);
  uint16_t got[3] = {};
  loaded.store.read("rows.w", got, sizeof got);
  EXPECT_TRUE(std::equal(got, got + 3, bits));
  EXPECT_EQ(SafetensorsReader(path / "optimizer.safetensors").type("rows.w"), (ValueType{DType::kBF16, {3}}));
}

// So a run goes on with another optimizer.state_type.
TEST(Checkpoint, StatesBecomeTheTypeThatTheyHaveNow) {
  TemporaryFolder out;
  HostStore saved, loaded;
  for (HostStore* store : {&saved, &loaded}) store->fill(1);
  saved.add_state("m.w", {DType::kF32, {3}});
  loaded.add_state("m.w", {DType::kBF16, {3}});
  const float values[] = {1, 1.00390624f, -3.25f};
  saved.store.write("m.w", values, sizeof values);
  load_optimizer(save_checkpoint(out.path(), state_of(10), saved.store, 2), loaded.store);
  uint16_t got[3] = {};
  loaded.store.read("m.w", got, sizeof got);
  EXPECT_EQ(got[0], 0x3F80);
  EXPECT_EQ(got[1], 0x3F80) << "to the nearest";
  EXPECT_EQ(got[2], 0xC050);
  load_optimizer(save_checkpoint(out.path(), state_of(20), loaded.store, 2), saved.store);
  float back[3] = {};
  saved.store.read("m.w", back, sizeof back);
  EXPECT_EQ(back[2], -3.25f);
}

TEST(Checkpoint, GivesBackEveryBit) {
  TemporaryFolder out;
  HostStore saved, loaded;
  saved.fill(1);
  loaded.fill(2);
  fs::path path = save_checkpoint(out.path(), state_of(10), saved.store, 2);
  EXPECT_EQ(path, out / "checkpoints/step_00000010");
  load_parameters(path, loaded.store);
  load_optimizer(path, loaded.store);
  expect_same_tensors(saved, loaded);
}

TEST(Checkpoint, GivesBackTheState) {
  TemporaryFolder out;
  HostStore store;
  CheckpointState state = read_state(save_checkpoint(out.path(), state_of(10), store.store, 2));
  EXPECT_EQ(state.step, 10);
  EXPECT_EQ(state.tokens, 240);
  EXPECT_EQ(state.data_position, 40);
  EXPECT_EQ(state.seed, 1337);
  EXPECT_EQ(state.tokenizer, "xxh64:abc");
  EXPECT_EQ(nlohmann::ordered_json::parse(state.config_json), nlohmann::ordered_json::parse(state_of(10).config_json));
}

TEST(Checkpoint, TheModelFileIsThatOfHuggingFace) {
  TemporaryFolder out;
  HostStore store;
  SafetensorsReader file(save_checkpoint(out.path(), state_of(1), store.store, 2) / "model.safetensors");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.names().size(), store.parameters.size());
  EXPECT_EQ(file.type("wte.weight").shape, (Shape{11, 8}));
  EXPECT_EQ(file.type("h.0.attn.c_attn.weight").shape, (Shape{8, 24}));
}

TEST(Checkpoint, TheOptimizerFileHoldsWhatARunGoesOnWith) {
  TemporaryFolder out;
  HostStore store;
  store.add_state("loss_scale", {DType::kF32, {2}});
  SafetensorsReader file(save_checkpoint(out.path(), state_of(1), store.store, 2) / "optimizer.safetensors");
  EXPECT_EQ(file.names().size(), 2 * store.parameters.size() + 2);
  for (const char* name : {"adam.m.wte.weight", "adam.v.ln_f.bias", "step", "loss_scale"})
    EXPECT_TRUE(file.contains(name)) << name;
}

TEST(Checkpoint, PaddedRowsAreNotPartOfIt) {
  TemporaryFolder out;
  ModelConfig untied = test::small_model();
  untied.tie_weights = false;
  HostStore padded(untied, 16), plain(untied), other(untied, 32);
  padded.fill(1);
  other.fill(2);
  fs::path path = save_checkpoint(out.path(), state_of(1), padded.store, 2);
  for (HostStore* store : {&plain, &other}) {
    load_parameters(path, store->store);
    load_optimizer(path, store->store);
  }
  for (const char* name : {"wte.weight", "lm_head.weight", "adam.m.wte.weight", "adam.v.lm_head.weight"}) {
    std::vector<float> expected = padded.read(name);
    expected.resize(11 * 8);
    EXPECT_EQ(plain.read(name), expected) << name;
    expected.resize(32 * 8);  // zeros
    EXPECT_EQ(other.read(name), expected) << name;
  }
}

// More elements than are loaded at a time.
TEST(Checkpoint, LargeTensorsAreLoadedPieceByPiece) {
  TemporaryFolder out;
  ModelConfig model = test::small_model();
  model.vocab = 150'001;
  HostStore saved(model), padded(model, 150'016);
  saved.fill(1);
  fs::path path = save_checkpoint(out.path(), state_of(1), saved.store, 2);
  load_parameters(path, padded.store);
  std::vector<float> expected = saved.read("wte.weight");
  expected.resize(150'016 * 8);  // zeros
  EXPECT_TRUE(padded.read("wte.weight") == expected);

  test::HostBackend backend;
  TensorStore low(backend);
  Graph graph;
  for (const std::string& name : saved.store.names())
    if (const ArgumentSpec& spec = saved.store.spec(name); is_parameter(spec.role))
      graph.add_argument(Argument::Kind::kParameter, name, {DType::kF16, spec.global}, spec);
  low.make(graph);
  load_parameters(path, low);
  std::vector<_Float16> narrow(expected.begin(), expected.begin() + 150'001 * 8), loaded(narrow.size());
  low.read("wte.weight", loaded.data(), int64_t(loaded.size() * 2));
  EXPECT_TRUE(loaded == narrow);
}

TEST(Checkpoint, PaddedRowsBecomeZero) {
  TemporaryFolder out;
  HostStore saved, loaded(test::small_model(), 16);
  saved.fill(1);
  loaded.write("wte.weight", std::vector<float>(16 * 8, 7.0f));
  load_parameters(save_checkpoint(out.path(), state_of(1), saved.store, 2), loaded.store);
  std::vector<float> rows = loaded.read("wte.weight");
  EXPECT_TRUE(std::all_of(rows.begin() + 11 * 8, rows.end(), [](float x) { return x == 0; }));
}

TEST(Checkpoint, KeepsTheLastOnesAndALinkToTheNewest) {
  TemporaryFolder out;
  HostStore store;
  for (int64_t step : {1, 2, 3, 100}) save_checkpoint(out.path(), state_of(step), store.store, 2);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000003", "step_00000100"}));
  EXPECT_EQ(fs::read_symlink(out / "checkpoints/latest"), "step_00000100");
  EXPECT_EQ(read_state(out / "checkpoints/latest").step, 100);
  save_checkpoint(out.path(), state_of(101), store.store, 1);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000101"}));
}

// So that there is one left to go on from when the newer ones turn out to be lost.
TEST(Checkpoint, KeepsTheOneThatIsKnownToBeGood) {
  TemporaryFolder out;
  HostStore store;
  auto save = [&](int64_t step, int64_t good) {
    CheckpointState state = state_of(step);
    state.good = {.step = good, .band = {.losses = step, .mean = 2.5, .lowest = 2, .change = 0.1, .last = 2.25}};
    save_checkpoint(out.path(), state, store.store, 1);
    return state;
  };
  save(1, 0), save(2, 1), save(3, 1);
  CheckpointState last = save(4, 1);
  std::vector<std::string> both = {"latest", "step_00000001", "step_00000004"};
  EXPECT_EQ(entries_in(out / "checkpoints"), both);
  FoundCheckpoint found = *find_checkpoint(out.path(), nullptr);
  EXPECT_EQ(found.state.good, last.good);
  repair_checkpoints(out.path(), found, 1);
  EXPECT_EQ(entries_in(out / "checkpoints"), both);
  remove_old_checkpoints(out.path(), 1, 4);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000004"}));
}

TEST(Checkpoint, KeepsTheBest) {
  TemporaryFolder out;
  HostStore store;
  for (int64_t step : {1, 2, 3, 4}) {
    CheckpointState state = state_of(step);
    state.best = step == 1 ? 0 : 1;
    save_checkpoint(out.path(), state, store.store, 1);
  }
  point_best(out / "checkpoints", 1);
  std::vector<std::string> both = {"best", "latest", "step_00000001", "step_00000004"};
  EXPECT_EQ(entries_in(out / "checkpoints"), both);
  FoundCheckpoint found = *find_checkpoint(out.path(), nullptr);
  EXPECT_EQ(found.state.best, 1);
  repair_checkpoints(out.path(), found, 1);
  remove_old_checkpoints(out.path(), 1, 0, 1);
  EXPECT_EQ(entries_in(out / "checkpoints"), both);
  EXPECT_EQ(open_checkpoint(out / "checkpoints/best", nullptr).state.step, 1);
  point_best(out / "checkpoints", 4);
  EXPECT_EQ(open_checkpoint(out / "checkpoints/best", nullptr).state.step, 4);
  point_best(out / "checkpoints", 0);
  remove_old_checkpoints(out.path(), 1, 0);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000004"}));
}

TEST(Checkpoint, KeepsMultiples) {
  TemporaryFolder out;
  HostStore store;
  for (int64_t step = 0; step <= 7; ++step) save_checkpoint(out.path(), state_of(step), store.store, {2, 3});
  EXPECT_EQ(entries_in(out / "checkpoints"),
            (std::vector<std::string>{"latest", "step_00000003", "step_00000006", "step_00000007"}));
  repair_checkpoints(out.path(), find_checkpoint(out.path(), nullptr), {1, 2});
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000006", "step_00000007"}));
  // A run that begins anew there does not keep what the other reached.
  save_checkpoint(out.path(), state_of(0), store.store, {1, 2});
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000000"}));
}

// What was saved as the best alone takes no other's place, and goes when it is not the best any more.
TEST(Checkpoint, ExtraOnesDoNotCount) {
  TemporaryFolder out;
  HostStore store;
  auto save = [&](int64_t step, int64_t best, bool is_extra) {
    CheckpointState state = state_of(step);
    state.best = best;
    state.is_extra = is_extra;
    save_checkpoint(out.path(), state, store.store, 2);
  };
  save(10, 0, false), save(20, 0, false), save(23, 0, true);
  std::vector<std::string> all = {"latest", "step_00000010", "step_00000020", "step_00000023"};
  EXPECT_EQ(entries_in(out / "checkpoints"), all);
  FoundCheckpoint found = *find_checkpoint(out.path(), nullptr);
  EXPECT_TRUE(found.state.is_extra);
  repair_checkpoints(out.path(), found, 1);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000020", "step_00000023"}))
      << "the newest stays";
  save(26, 23, true);
  EXPECT_EQ(entries_in(out / "checkpoints"),
            (std::vector<std::string>{"latest", "step_00000020", "step_00000023", "step_00000026"}));
  remove_old_checkpoints(out.path(), 2, 0, 26);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000020", "step_00000026"}));
  save(30, 26, false), save(40, 26, false);
  EXPECT_EQ(entries_in(out / "checkpoints"),
            (std::vector<std::string>{"latest", "step_00000026", "step_00000030", "step_00000040"}));
}

TEST(Checkpoint, KeepsAllWhenAskedTo) {
  TemporaryFolder out;
  HostStore store;
  for (int64_t step = 1; step <= 5; ++step) save_checkpoint(out.path(), state_of(step), store.store, 0);
  EXPECT_EQ(entries_in(out / "checkpoints").size(), 6u);
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  TemporaryFolder out;
  HostStore store, loaded;
  store.fill(1);
  save_checkpoint(out.path(), state_of(5), store.store, 2);
  store.fill(2);
  fs::path path = save_checkpoint(out.path(), state_of(5), store.store, 2);
  load_parameters(path, loaded.store);
  EXPECT_EQ(loaded.read("wte.weight"), store.read("wte.weight"));
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000005"}));
}

// A run that was started afresh in the same folder is newer than the steps that another one had reached there.
TEST(Checkpoint, NewestIsTheOneSavedLastWhateverItsStep) {
  TemporaryFolder out;
  HostStore store;
  for (int64_t step : {750, 1000, 250}) save_checkpoint(out.path(), state_of(step), store.store, 2);
  EXPECT_EQ(find_checkpoint(out.path(), nullptr)->state.step, 250);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000250", "step_00001000"}));
}

TEST(Checkpoint, NothingToFind) {
  TemporaryFolder out;
  std::vector<std::string> warnings;
  EXPECT_FALSE(find_checkpoint(out / "none", &warnings));
  fs::create_directories(out / "checkpoints");
  EXPECT_FALSE(find_checkpoint(out.path(), &warnings));
  EXPECT_TRUE(warnings.empty());
}

TEST(Checkpoint, WhatAKilledProcessLeftIsNotFoundAndGoesAway) {
  TemporaryFolder out;
  HostStore store;
  save_checkpoint(out.path(), state_of(1), store.store, 5);
  fs::path leftover = out / "checkpoints/step_00000002.tmp";
  fs::copy(out / "checkpoints/step_00000001", leftover);
  std::vector<std::string> warnings;
  EXPECT_EQ(find_checkpoint(out.path(), &warnings)->state.step, 1);
  EXPECT_TRUE(warnings.empty());
  save_checkpoint(out.path(), state_of(3), store.store, 5);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000001", "step_00000003"}));
}

// Printed again with its indentation, 62 KB of it would be 2 GB.
TEST(Checkpoint, RefusesDeepStates) {
  TemporaryFolder folder;
  std::string deep = fmt::format(R"({{"a":{}}})", nested_lists(31'000));
  write_file_atomic(folder / "state.json", deep);
  expect_user_error([&] { read_record(folder.path()); }, {"state.json", "JSON object", "damaged"});
}

TEST(Checkpoint, OpensFoldersOfRunsAndOfCheckpoints) {
  TemporaryFolder out;
  HostStore store;
  for (int64_t step : {1, 2}) save_checkpoint(out.path(), state_of(step), store.store, 2);
  EXPECT_EQ(open_checkpoint(out.path(), nullptr).state.step, 2);
  EXPECT_EQ(open_checkpoint(out / "checkpoints/step_00000001", nullptr).state.step, 1);
  EXPECT_EQ(open_checkpoint(out / "checkpoints/latest", nullptr).state.step, 2);
  for (const char* spelling : {"checkpoints", "checkpoints/", "checkpoints/."})
    EXPECT_EQ(open_checkpoint(out / spelling, nullptr).state.step, 2) << spelling;
}

/// Saves one checkpoint after another and says on the descriptor which steps are done, until it is killed.
[[noreturn]] void save_forever(const fs::path& out, int64_t step, int fd) {
  try {
    HostStore store;
    store.fill(1);
    for (;; ++step) {
      save_checkpoint(out, state_of(step), store.store, 2);
      if (::write(fd, &step, sizeof step) != sizeof step) ::_exit(2);
    }
  } catch (...) {
    ::_exit(1);
  }
}

TEST(Checkpoint, KilledAtAnyMomentLeavesTheLastOneThatWasSaved) {
  TemporaryFolder out;
  int64_t last = 0;
  for (int round = 0; round < 25; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    pid_t child = ::fork();
    if (child == 0) save_forever(out.path(), last + 1, ends[1]);
    ::close(ends[1]);
    int64_t done = 0;
    if (::read(ends[0], &done, sizeof done) == sizeof done) last = done;
    std::this_thread::sleep_for(std::chrono::milliseconds(4 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (::read(ends[0], &done, sizeof done) == sizeof done) last = done;
    ::close(ends[0]);

    std::vector<std::string> warnings;
    std::optional<FoundCheckpoint> found = find_checkpoint(out.path(), &warnings);
    ASSERT_TRUE(found);
    EXPECT_TRUE(warnings.empty()) << warnings[0];
    EXPECT_GE(found->state.step, last);
    EXPECT_LE(found->state.step, last + 1);
    EXPECT_TRUE(fs::exists(out / "checkpoints/latest/state.json"));
    last = found->state.step;
  }
}

TEST(Checkpoint, WhatIsNotFiniteIsNotSaved) {
  TemporaryFolder out;
  HostStore store;
  store.fill(1);
  save_checkpoint(out.path(), {.step = 1, .config_json = "{}"}, store.store, 1);
  for (const char* name : {"wte.weight", "adam.v.wte.weight"}) {
    for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      store.fill(2);
      std::vector<float> values = store.read(name);
      values[3] = bad;
      store.write(name, values);
      expect_user_error([&] { save_checkpoint(out.path(), {.step = 2, .config_json = "{}"}, store.store, 1); },
                        {"step 2 could not be saved", name, "finite",
                         "has the checkpoint of step 1; the same command goes on after step 1"});
      EXPECT_EQ(list_checkpoints(checkpoints_folder(out.path())).size(), 1u);
    }
  }
  EXPECT_EQ(find_checkpoint(out.path(), nullptr)->state.step, 1);
}

// As after a kill between the last checkpoint's name and what follows it.
TEST(Checkpoint, RepairPointsLatestToTheNewestAndRemovesWhatIsTooMuch) {
  TemporaryFolder out;
  HostStore store;
  std::vector<fs::path> paths;
  for (int64_t step : {1, 2, 3})
    paths.push_back(save_checkpoint(out.path(), {.step = step, .config_json = "{}"}, store.store, 5));
  point_latest(paths[0]);
  fs::create_directory(out / "checkpoints/step_00000004.tmp");
  repair_checkpoints(out.path(), find_checkpoint(out.path(), nullptr), 2);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000002", "step_00000003"}));
  EXPECT_EQ(fs::read_symlink(out / "checkpoints/latest"), "step_00000003");
  fs::remove(paths[2] / "optimizer.safetensors");
  repair_checkpoints(out.path(), find_checkpoint(out.path(), nullptr), 1);
  EXPECT_EQ(fs::read_symlink(out / "checkpoints/latest"), "step_00000002") << "the newest good one";
  EXPECT_TRUE(fs::exists(paths[1])) << "is not pushed out by a damaged one";
}

// As `scp -r` and `cp -rL` copy a run.
TEST(Checkpoint, RepairMakesALinkOfALatestThatWasCopied) {
  TemporaryFolder out;
  HostStore store;
  fs::path path = save_checkpoint(out.path(), {.step = 1, .config_json = "{}"}, store.store, 1);
  fs::path latest = out / "checkpoints/latest";
  fs::remove(latest);
  fs::copy(path, latest, fs::copy_options::recursive);
  repair_checkpoints(out.path(), find_checkpoint(out.path(), nullptr), 1);
  EXPECT_EQ(fs::read_symlink(latest), "step_00000001");
  fs::remove(latest);
  make_folder(latest);
  write_file_atomic(latest / "mine", "x");
  expect_user_error([&] { repair_checkpoints(out.path(), find_checkpoint(out.path(), nullptr), 1); },
                    {latest.string(), "no copy of step_00000001"});
  EXPECT_EQ(read_file(latest / "mine"), "x");
}

TEST(Checkpoint, WhatIsFoundCanBeLoadedAfterItWasRemoved) {
  TemporaryFolder out;
  HostStore store, other;
  store.fill(1);
  save_checkpoint(out.path(), {.step = 1, .config_json = "{}"}, store.store, 1);
  FoundCheckpoint found = open_checkpoint(out / "checkpoints/latest", nullptr);
  save_checkpoint(out.path(), {.step = 2, .config_json = "{}"}, store.store, 1);
  ASSERT_FALSE(fs::exists(out / "checkpoints/step_00000001"));
  load_parameters(found, other.store);
  EXPECT_EQ(other.read("wte.weight"), store.read("wte.weight"));
}

}  // namespace
}  // namespace tokamak
