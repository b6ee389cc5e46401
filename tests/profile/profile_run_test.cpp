#include "profile/profile_run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "checkpoint/checkpoint_tensors.h"
#include "passes/step_mesh.h"
#include "run/trainer.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

constexpr ProfileRunOptions kShort = {.steps = {.steps = 2, .warmup = 1}};

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 4, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 8;
  config.compile.precision = Precision::kFp32;
  config.threads = 1;
  return config;
}

ProfileReport run_alone(const RunConfig& config, bool reads_data = false) {
  auto backend = cpu::make_backend();
  return profile_run(config, cpu::nominal_platform(), *backend, nullptr,
                     {.steps = kShort.steps, .reads_data = reads_data});
}

// The report of rank 0.
ProfileReport run_on_mesh(const RunConfig& config) {
  set_num_threads(1);  // ranks share the cores
  Mesh mesh = step_mesh(config.mesh);
  ProfileReport report;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    auto backend = cpu::make_backend(int(mesh.num_ranks()));
    ProfileReport mine = profile_run(config, cpu::nominal_platform(1), *backend, &ranks, kShort);
    if (leads(&ranks)) report = mine;
  });
  set_num_threads(0);
  return report;
}

double sum_of_predicted(const ProfileReport& report) {
  double sum = 0;
  for (double seconds : predicted_work(report)) sum += seconds;
  return sum;
}

TEST(ProfileRun, PricesWhatItMeasures) {
  ProfileReport report = run_alone(tiny());
  ASSERT_EQ(report.ranks.size(), 1u);
  double measured = 0, in_ledger = 0;
  for (const KernelProfile& kernel : report.kernels) {
    EXPECT_GT(kernel.seconds, 0) << kernel.label;
    EXPECT_GT(kernel.predicted, kernel.roof) << kernel.label;
    EXPECT_EQ(kernel.tensor_cores, "") << "on a CPU";
    measured += kernel.seconds;
  }
  for (const BreakdownRow& row : rows_of(report.ranks[0].breakdown))
    if (row.name != "copies" && row.name != "launch gaps" && row.name != "data wait" && row.name != "idle")
      in_ledger += row.seconds / double(report.ranks[0].steps);
  EXPECT_LE(in_ledger, measured * 1.0001);
  EXPECT_GT(report.predicted_seconds, 0);
  EXPECT_NEAR(sum_of_predicted(report) / report.predicted_seconds, 1, 1e-9);
  std::vector<OperatorClass> classes = operator_classes(report.kernels);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_GT(classes[0].flops, classes[1].flops);
}

TEST(ProfileRun, TellsOfEveryRankAndOfWhatTheySend) {
  RunConfig config = tiny();
  config.mesh.data = 2;
  ProfileReport report = run_on_mesh(config);
  ASSERT_EQ(report.ranks.size(), 2u);
  for (const RankSummary& rank : report.ranks) {
    EXPECT_NEAR(rank.breakdown.sum(), rank.seconds, 1e-9);
    EXPECT_GT(rank.breakdown.of(WorkClass::kCommunication), 0);
  }
  auto collective = std::find_if(report.kernels.begin(), report.kernels.end(),
                                 [](const KernelProfile& k) { return k.work == WorkClass::kCommunication; });
  ASSERT_NE(collective, report.kernels.end());
  EXPECT_GT(collective->link_bytes, 0);
  std::string text = format_profile(report, 5);
  EXPECT_NE(text.find("\nrank "), std::string::npos);
}

TEST(ProfileRun, CountsTransfersBetweenStagesAsCommunication) {
  RunConfig config = tiny();
  config.train.batch = 2;
  config.train.total_batch = 4 * config.train.batch * config.model.context;
  config.mesh.pipe = 2;
  ProfileReport report = run_on_mesh(config);
  ASSERT_EQ(report.ranks.size(), 2u);
  for (const RankSummary& rank : report.ranks) {
    EXPECT_NEAR(rank.breakdown.sum(), rank.seconds, 1e-9);
    EXPECT_GT(rank.breakdown.of(WorkClass::kCommunication), 0);
  }
  // The rows are of the first stage's rank; of the total it waits for the other stage the rest.
  double rows = sum_of_predicted(report);
  EXPECT_LE(rows, report.predicted_seconds * (1 + 1e-9));
  EXPECT_GT(rows, report.predicted_seconds / 3);
}

TEST(ProfileRun, ReadsTheDataOfTheRunAndKeepsNothing) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.model.vocab = 301;
  EXPECT_EQ(run_alone(config, true).ranks.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(config.train.out));
  config.data.path = {"nowhere"};
  EXPECT_THROW(run_alone(config, true), UserError);
  EXPECT_EQ(run_alone(config).ranks.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(config.train.out));
}

// What is not the run's is refused; what is goes on with its data and states.
TEST(ProfileRun, GoesOnFromACheckpoint) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.model.vocab = 301;
  auto backend = cpu::make_backend();
  test::QuietObserver quiet;
  train(config, cpu::nominal_platform(), *backend, quiet, [] { return false; });
  std::string before = read_file(folder / "run/ledger.jsonl");
  std::optional<FoundCheckpoint> found = find_checkpoint(config.train.out, nullptr);
  ASSERT_TRUE(found);
  ProfileRunOptions options = kShort;
  options.reads_data = true;
  ProfileReport report = profile_run(config, cpu::nominal_platform(), *backend, nullptr, options, &*found);
  EXPECT_NEAR(report.ranks[0].breakdown.sum(), report.ranks[0].seconds, 1e-9);
  EXPECT_EQ(read_file(folder / "run/ledger.jsonl"), before) << "nothing is kept";
  EXPECT_EQ(find_checkpoint(config.train.out, nullptr)->state.step, 20);
  RunConfig other = config;
  write_file_atomic(folder / "more.txt", test::tiny_text(9000, 2));
  prepare({.inputs = {(folder / "more.txt").string()}, .out = folder / "other", .vocab_size = 301});
  other.data.path = {(folder / "other").string()};
  EXPECT_THROW(profile_run(other, cpu::nominal_platform(), *backend, nullptr, options, &*found), UserError);
  RunConfig wider = config;
  wider.model.width = 64;
  EXPECT_THROW(profile_run(wider, cpu::nominal_platform(), *backend, nullptr, options, &*found), UserError);
  found->files[kModelFile] = found->files[kOptimizerFile];
  EXPECT_THROW(profile_run(config, cpu::nominal_platform(), *backend, nullptr, options, &*found), UserError)
      << "the steps begin with the checkpoint's parameters";
}

TEST(ProfileRun, RefusesWhatDoesNotFit) {
  RunConfig config = tiny();
  config.model.width = 1 << 20;
  EXPECT_THROW(run_alone(config), UserError);
}

TEST(ProfileReport, SaysWhatEachPartTakes) {
  ProfileReport report = run_alone(tiny());
  std::string text = format_profile(report, 2);
  for (const BreakdownRow& row : rows_of(report.ranks[0].breakdown)) EXPECT_NE(text.find(row.name), std::string::npos);
  for (const char* part :
       {"total                    ", "tensor contraction", "of roof", "more kinds", "observing takes"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  auto json = nlohmann::json::parse(profile_json(report));
  EXPECT_EQ(json["kernels"].size(), report.kernels.size());
  EXPECT_EQ(json["ranks"][0]["steps"], 2);
  EXPECT_EQ(json["config"]["model"]["layers"], 4);
}

TEST(RankSummary, ObservingTakesNoNegativeTime) {
  RankSummary summary{.steps = 3, .seconds = 0.303, .plain_seconds = 0.3, .unrecorded_seconds = 0.3};
  EXPECT_EQ(describe_slowdown(summary), "observing takes +1.0%");
  summary.seconds = 0.297;
  EXPECT_EQ(describe_slowdown(summary), "observing takes less than steps differ by (-1.0%)");
}

TEST(RankSummary, GoesThroughText) {
  RankSummary summary{.steps = 3, .seconds = 0.3, .plain_seconds = 0.29, .unrecorded_seconds = 0.295};
  summary.breakdown = break_down(std::vector<ActivitySpan>{{Activity::kCommunication, {}, 0.1, 0.2}}, 0.3);
  RankSummary back = rank_summary(to_text(summary));
  EXPECT_EQ(back.seconds, 0.3);
  EXPECT_EQ(back.unrecorded_seconds, 0.295);
  EXPECT_EQ(back.breakdown.work, summary.breakdown.work);
  EXPECT_EQ(back.breakdown.idle, summary.breakdown.idle);
  EXPECT_NEAR(back.slowdown(), 0.3 / 0.295 - 1, 1e-12);
}

}  // namespace
}  // namespace tokamak
