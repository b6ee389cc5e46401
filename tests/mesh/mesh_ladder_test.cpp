#include "ladder/mesh_ladder.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/error.h"
#include "base/parallel.h"
#include "config/config.h"
#include "exec/mesh_ranks.h"
#include "passes/step_mesh.h"

namespace tokamak {
namespace {

constexpr Rung kTop[] = {{"the top", [](RunConfig&, int64_t) {}}};
constexpr LadderOptions kShort = {.steps = 2};

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 8;
  config.compile.precision = Precision::kFp32;
  config.threads = 1;
  return config;
}

// With one rank's memory as a test says.
std::vector<MeshResult> climb(const RunConfig& config, const std::vector<MeshRung>& rungs, int* reports = nullptr) {
  set_num_threads(1);  // ranks share the cores
  Mesh mesh = step_mesh(config.mesh);
  std::vector<MeshResult> results;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    auto backend = cpu::make_backend(int(mesh.num_ranks()));
    Platform platform = cpu::nominal_platform(1);
    RungResult best;  // of the rank that leads
    if (leads(&ranks))
      best = run_ladder(for_one_rank(config, mesh.num_ranks()), platform, *backend, kTop, kShort, {})[0];
    auto report = [&](const MeshResult&) { *reports += 1; };
    auto mine = run_mesh_ladder(best, platform, *backend, ranks, rungs, {.ladder = kShort},
                                reports ? report : std::function<void(const MeshResult&)>());
    if (leads(&ranks)) results = mine;
  });
  set_num_threads(0);
  return results;
}

std::vector<std::string> names(const std::vector<MeshRung>& rungs) {
  std::vector<std::string> names;
  for (const MeshRung& rung : rungs) names.push_back(rung.name);
  return names;
}

TEST(MeshRungs, DivideTheRunInEveryWay) {
  std::vector<std::string> of_four = {
      "data 4",       "data 4, ZeRO 1",  "data 4, ZeRO 2",      "data 4, ZeRO 3",
      "tensor 4",     "tensor 4, async", "context 4",           "data 2 x tensor 2, async",
      "pipe 4, 1f1b", "pipe 4, gpipe",   "pipe 4, interleaved", "pipe 4, zero_bubble"};
  EXPECT_EQ(names(mesh_rungs({.data = 4})), of_four);
  EXPECT_EQ(names(mesh_rungs({.data = 2, .tensor = 2})), of_four);
  EXPECT_EQ(mesh_rungs({.data = 8})[7].name, "data 4 x tensor 2, async");
}

TEST(MeshRungs, ThereIsNoHybridOfAPrimeNumber) { EXPECT_EQ(mesh_rungs({.data = 3})[7].name, "pipe 3, 1f1b"); }

TEST(MeshRungs, WhatWasAskedForIsOne) {
  EXPECT_EQ(mesh_rungs({.context = 2, .tensor = 2, .bucket_mib = 7}).back().name, "context 2 x tensor 2, async");
  EXPECT_EQ(mesh_rungs({.context = 2, .tensor = 2, .async_tensor = false}).back().name, "context 2 x tensor 2");
  EXPECT_EQ(mesh_rungs({.pipe = 4, .schedule = "interleaved", .interleave = 3}).back().name, "pipe 4, interleaved 3");
  for (const MeshRung& rung : mesh_rungs({.context = 2, .tensor = 2, .bucket_mib = 7}))
    EXPECT_EQ(rung.mesh.bucket_mib, 7) << rung.name;
}

TEST(MeshRungs, OneRankHasItsShareOfTheStep) {
  RunConfig config = tiny();
  config.mesh = {.data = 4, .zero = 3};
  config.train.total_batch = 2 * 8 * 16;
  RunConfig one = for_one_rank(config, 4);
  EXPECT_EQ(one.train.batch, 2);
  EXPECT_EQ(one.train.total_batch, 2 * 2 * 16);
  EXPECT_EQ(step_mesh(one.mesh).num_ranks(), 1);
  config.train.batch = 6;
  EXPECT_THROW(for_one_rank(config, 4), UserError);
}

TEST(MeshLadder, RunsEveryWay) {
  RunConfig config = tiny();
  config.mesh.data = 4;
  config.model.layers = 4;
  int reports = 0;
  auto results = climb(config, mesh_rungs(config.mesh), &reports);
  ASSERT_EQ(results.size(), 12u);
  EXPECT_EQ(reports, 12) << "by the rank that leads";
  for (const MeshResult& r : results) {
    EXPECT_EQ(r.run.name, r.rung.name);
    EXPECT_EQ(r.sequences, 8) << r.rung.name;
    if (r.rung.mesh.tensor == 4) {
      EXPECT_NE(r.run.failure.find("model.heads = 2, or at most a third more, got 4"), std::string::npos)
          << r.run.failure;
      continue;
    }
    if (r.rung.mesh.interleave > 1) {
      EXPECT_NE(r.run.failure.find("mesh.pipe x mesh.interleave"), std::string::npos) << r.run.failure;
      continue;
    }
    ASSERT_TRUE(r.run.ran()) << r.rung.name << ": " << r.run.failure;
    EXPECT_EQ(r.run.micro_batches, r.rung.mesh.pipe > 1 ? 8 : 1) << r.rung.name;
    EXPECT_EQ(r.run.step_tokens, 8 * 16) << r.rung.name;
    EXPECT_GT(r.run.ms, 0) << r.rung.name;
    EXPECT_GT(r.predicted_exposed_ms, 0) << r.rung.name;
    EXPECT_LT(r.predicted_exposed_ms, r.run.predicted_ms) << r.rung.name;
    ASSERT_TRUE(r.exposed_ms) << r.rung.name;
    EXPECT_LT(*r.exposed_ms, r.run.ms) << r.rung.name << ": without communication a step takes time, too";
    EXPECT_DOUBLE_EQ(r.efficiency(), r.run.speedup_total / 4) << r.rung.name;
    EXPECT_GT(r.efficiency(), 0) << r.rung.name;
  }
  EXPECT_LT(results[3].run.planned_bytes, results[0].run.planned_bytes) << "ZeRO 3 keeps a share of the parameters";
}

TEST(MeshLadder, KeepsTheMicroBatchesOfOneRank) {
  RunConfig config = tiny();
  config.mesh.data = 2;
  config.train.total_batch = 3 * 8 * 16;
  MeshResult result = climb(config, {mesh_rung(config.mesh)})[0];
  ASSERT_TRUE(result.run.ran()) << result.run.failure;
  EXPECT_EQ(result.run.micro_batches, 3);
  EXPECT_EQ(result.sequences, 3 * 8);
}

// A model that fits several ranks alone has nothing to be compared with.
TEST(MeshLadder, GoesOnWhereOneRankHasNoRun) {
  RungResult large{.name = "fp32"}, half{.name = "+ BF16"}, aside{.name = "aside", .optional = true};
  for (RungResult* rung : {&large, &half, &aside}) rung->kept = false, rung->failure = "does not fit";
  EXPECT_EQ(best_rung({large, half, aside})->name, "+ BF16");
  RungResult slow{.name = "slow", .tokens_per_second = 1}, fast{.name = "fast", .tokens_per_second = 3},
      last{.name = "last", .tokens_per_second = 2};
  EXPECT_EQ(best_rung({large, slow, fast, last})->name, "fast");
  EXPECT_EQ(best_rung({}), nullptr);
}

}  // namespace
}  // namespace tokamak
