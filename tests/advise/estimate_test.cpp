#include "advise/estimate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "advise/exact.h"
#include "advise/training_request.h"
#include "backend/cuda/cuda_backend.h"
#include "config/cluster.h"
#include "config/preset.h"
#include "graph/gpu_target.h"

namespace tokamak {
namespace {

struct Case {
  const char* model;
  MeshConfig mesh;
  int64_t micro_batch = 1, micro_batches = 1;
  const char* cluster = "h200";
  double dropout = 0;
  int64_t context = 0;  // 0: the model's
  double close = 0.02;  // of the compiled step
};

ModelConfig preset(const char* name) {
  ModelConfig model{.preset = name};
  apply_preset(model);
  return model;
}

MeshConfig mesh(int64_t pipe, int64_t data, int64_t context, int64_t tensor, int64_t zero = 0) {
  MeshConfig mesh{.pipe = pipe, .data = data, .context = context, .tensor = tensor};
  mesh.zero = zero;
  mesh.slots = 1;
  return mesh;
}

MeshConfig with_buckets(MeshConfig mesh, int64_t mib) {
  mesh.bucket_mib = mib;
  return mesh;
}

MeshConfig without_sequence(MeshConfig mesh) {
  mesh.sequence = false;
  return mesh;
}

MeshConfig with_schedule(MeshConfig mesh, const char* schedule) {
  mesh.schedule = schedule;
  return mesh;
}

MeshConfig interleaved(MeshConfig mesh, int64_t chunks = 2) {
  mesh.interleave = chunks;
  return with_schedule(mesh, "interleaved");
}

const Case kCases[] = {
    {"gpt2-124m", mesh(1, 1, 1, 1), 64},
    {"gpt2-124m", mesh(1, 1, 1, 1), 4},
    {"gpt2-124m", mesh(1, 1, 1, 1), 16, 4},
    {"gpt2-124m", mesh(1, 1, 1, 1), 1, 64},  // biases' gradients are added in many small kernels
    {"gpt2-1558m", mesh(1, 1, 1, 1), 32},
    {"gpt2-1558m", mesh(1, 1, 1, 1), 64},   // GELU and norms are computed again
    {"gpt2-1558m", mesh(1, 1, 1, 1), 128},  // more than that
    {"gpt2-124m", mesh(1, 2, 1, 1), 64},
    {"gpt2-124m", mesh(1, 2, 1, 1, 1), 64},
    {"gpt2-124m", mesh(1, 2, 1, 1, 3), 64},
    {"gpt2-1558m", mesh(1, 4, 1, 1, 1), 8, 4},
    {"gpt2-1558m", mesh(1, 4, 1, 1, 2), 8, 4},
    {"gpt2-1558m", mesh(1, 4, 1, 1, 3), 32},
    {"gpt3-6.7b", mesh(1, 4, 1, 1, 3), 4},  // with matrices larger than a bucket
    {"gpt3-6.7b", with_buckets(mesh(1, 4, 1, 1, 3), 160), 4, 8},
    {"gpt2-124m", mesh(1, 1, 1, 2), 128},
    {"gpt3-6.7b", mesh(1, 1, 1, 4), 8, 8},
    {"gpt2-124m", mesh(1, 1, 2, 1), 128},
    {"gpt2-124m", mesh(2, 1, 1, 1), 16, 8},
    {"gpt3-6.7b", mesh(4, 1, 1, 1), 4, 32},
    {"gpt2-124m", mesh(5, 1, 1, 1), 16, 32},  // stages of 2 and 3 blocks, and the classifier is slower than both
    {"gpt2-774m", mesh(2, 2, 1, 1), 8, 8},
    {"gpt2-1558m", mesh(1, 8, 1, 1, 3), 1},  // gathers what it has no time to hide
    {.model = "gpt2-1558m", .mesh = mesh(1, 4, 2, 1, 2), .micro_batch = 4, .micro_batches = 4, .close = 0.03},
    {"gpt3-6.7b", mesh(1, 2, 2, 2, 1), 4, 2},
    // The update, which adds up what context cuts, has the peak.
    {.model = "gpt3-6.7b", .mesh = mesh(2, 2, 2, 1, 1), .micro_batch = 1, .micro_batches = 4, .close = 0.035},
    {"gpt2-1558m", with_schedule(mesh(4, 2, 1, 1), "zero_bubble"), 8, 1},  // products for weights fill little
    // The fullest stage is neither the first nor the last.
    {"gpt2-1558m", with_schedule(mesh(8, 1, 1, 1), "zero_bubble"), 8, 16},
    {"gpt3-2.7b", with_schedule(mesh(4, 1, 1, 2), "zero_bubble"), 4, 16},
    {"gpt3-2.7b", mesh(1, 8, 1, 1, 1), 1},  // matrices that fill a bucket, and biases that have none
    {"gpt2-1558m", interleaved(mesh(4, 2, 1, 1)), 2, 32},
    {"gpt3-6.7b", interleaved(mesh(2, 4, 1, 1, 1)), 1, 8},     // blocks are divided by what the classifier takes
    {"gpt3-6.7b", without_sequence(mesh(2, 1, 1, 4)), 8, 32},  // sums over tensor ranks wait for those of other blocks
    {"gpt3-6.7b", interleaved(without_sequence(mesh(2, 1, 1, 4)), 17), 8, 32},  // but for those of a block alone
    {"gpt3-6.7b", interleaved(mesh(4, 1, 2, 1), 4), 2, 32},                     // of two blocks, over context ranks
    {"gpt2-124m", mesh(1, 1, 1, 1), 64, 1, "h200", 0.1},
    {"gpt2-124m", mesh(1, 1, 1, 2), 64, 1, "h200", 0.1},
    {"gpt2-124m", mesh(1, 1, 1, 1), 1, 1, "h200", 0, 32768},
    {"gpt2-124m", mesh(1, 1, 2, 1), 2, 1, "h200", 0.1, 32768},
};

// Pipelines over more nodes than one.
const Case kPipelines[] = {
    {"gpt3-6.7b", interleaved(mesh(6, 32, 1, 1)), 1, 12, "dgx-h100"},   // chunks of two and three blocks
    {"gpt3-6.7b", interleaved(mesh(12, 1, 1, 2)), 4, 192, "dgx-a100"},  // of one and two
    {"gpt3-13b", interleaved(mesh(16, 48, 1, 1, 1)), 1, 128, "dgx-a100"},
    {"gpt3-2.7b", interleaved(mesh(6, 8, 1, 1, 1)), 1, 24, "dgx-a100"},
    {"gpt2-1558m", interleaved(mesh(4, 64, 1, 1, 1)), 1, 32, "dgx-a100"},
    {"gpt3-6.7b", with_schedule(mesh(12, 16, 1, 1, 1), "zero_bubble"), 1, 48, "dgx-h100"},
    {"gpt3-2.7b", with_schedule(mesh(3, 128, 1, 1, 1), "zero_bubble"), 1, 3, "dgx-h100"},
    {"gpt3-175b", with_schedule(mesh(32, 8, 1, 8, 1), "zero_bubble"), 1, 256, "dgx-a100"},  // the classifier waits
    {"gpt3-175b", with_schedule(mesh(32, 12, 1, 2, 1), "zero_bubble"), 1, 64, "dgx-a100"},
    // What 35 micro-batches of the first stage keep is too much where one's peak is as small as it can be.
    {.model = "gpt3-175b",
     .mesh = interleaved(mesh(12, 16, 1, 2, 1)),
     .micro_batch = 1,
     .micro_batches = 192,
     .cluster = "dgx-h100",
     .close = 0.03},
    // Not each stage computes as much again, nor fills its budget as full.
    {.model = "gpt3-175b",
     .mesh = interleaved(mesh(16, 96, 1, 2, 1)),
     .micro_batch = 1,
     .micro_batches = 64,
     .cluster = "dgx-h100",
     .close = 0.03},
};

// Where links between nodes are slow, and axes share them.
const Case kLargeWorlds[] = {
    {"gpt2-1558m", mesh(1, 1024, 1, 1), 16, 1, "dgx-h100"},
    {"gpt2-1558m", mesh(1, 3072, 1, 1, 1), 16, 1, "dgx-h100"},  // 3072 divides no matrix, so ZeRO cuts none
    {"gpt3-2.7b", mesh(1, 512, 1, 1, 1), 4, 1, "dgx-a100"},
    {"gpt3-6.7b", mesh(1, 512, 1, 1, 2), 2, 4, "dgx-a100"},
    {"gpt3-13b", mesh(1, 1024, 1, 1, 2), 2, 2, "dgx-h100"},  // casts parameters again
    {"gpt3-13b", with_buckets(mesh(1, 1024, 1, 1, 3), 250), 4, 1, "dgx-a100"},
    {"gpt3-6.7b", mesh(1, 128, 1, 4), 8, 1, "dgx-a100"},
    {"gpt3-6.7b", mesh(1, 128, 1, 4, 1), 8, 1, "dgx-h100"},
    {"gpt3-6.7b", mesh(1, 128, 1, 4, 3), 8, 1, "dgx-h100"},
    // From some thirty blocks on what is sent beside the backward pass falls behind.
    {.model = "gpt3-13b", .mesh = mesh(1, 384, 1, 8, 1), .micro_batch = 16, .cluster = "dgx-h100", .close = 0.03},
    {"gpt2-1558m", mesh(1, 24, 1, 1, 1), 2, 1, "dgx-h100"},
    {"gpt3-6.7b", mesh(1, 96, 1, 1, 2), 1, 1, "dgx-h100"},
    {"gpt2-1558m", mesh(1, 512, 2, 1, 2), 16, 1, "dgx-a100"},
    {"gpt2-1558m", mesh(1, 512, 2, 1, 2), 16, 1, "dgx-h100"},  // attention over context is one kernel
    {"gpt3-6.7b", mesh(1, 256, 2, 1, 1), 4, 1, "dgx-a100"},
    {"gpt3-6.7b", with_buckets(mesh(1, 256, 2, 1, 3), 160), 4, 1, "dgx-h100", 0, 0, 0.03},
    {"gpt3-13b", with_buckets(mesh(1, 384, 8, 1, 3), 250), 8, 1, "dgx-h100"},
    {"gpt3-6.7b", mesh(4, 128, 1, 1, 1), 2, 16, "dgx-a100"},
    {"gpt3-6.7b", mesh(8, 64, 1, 2), 4, 16, "dgx-a100"},
    {"gpt3-13b", mesh(4, 32, 1, 8, 1), 4, 16, "dgx-a100"},
    {"gpt3-13b", mesh(8, 32, 2, 2, 1), 4, 16, "dgx-a100"},
    {"gpt3-175b", mesh(12, 32, 1, 8, 1), 1, 96, "dgx-h100"},
    {"gpt3-13b", mesh(1, 16, 1, 1, 2), 1, 1, "dgx-h100"},
    {"gpt3-13b", mesh(1, 256, 1, 1, 1), 1, 1, "dgx-h100"},
    {"gpt3-2.7b", mesh(1, 512, 1, 1, 2), 2, 1, "dgx-h100"},  // scatters around 64 nodes wait for those of other blocks
    {"gpt3-175b", with_buckets(mesh(1, 384, 1, 2, 3), 720), 2, 1, "dgx-a100"},  // the stream waits for parameters
    // Gradients stand in line before what a kernel waits for.
    {"gpt3-6.7b", with_buckets(mesh(1, 48, 2, 1, 3), 160), 2, 4, "dgx-a100"},
    {"gpt2-1558m", mesh(1, 192, 2, 1, 3), 8, 2, "dgx-a100"},
    {"gpt3-6.7b", mesh(1, 192, 8, 1, 1), 16, 1, "dgx-a100"},
    {"gpt3-2.7b", mesh(1, 768, 2, 1, 2), 4, 4, "dgx-h100"},
    {"gpt3-6.7b", mesh(1, 48, 4, 2, 2), 32, 1, "dgx-h100"},
    {"gpt3-6.7b", with_buckets(mesh(1, 24, 2, 2, 3), 80), 4, 16, "dgx-a100"},
    {"gpt3-2.7b", mesh(1, 768, 1, 2), 2, 2, "dgx-a100"},
    {"gpt3-2.7b", mesh(1, 8, 1, 8, 1), 16, 1, "dgx-a100", 0, 0, 0.04},
    {"gpt2-1558m", mesh(1, 3072, 1, 1, 3), 1, 1, "dgx-h100"},
    {"gpt3-13b", with_schedule(mesh(16, 24, 1, 1, 1), "zero_bubble"), 2, 8, "dgx-h100"},
    {"gpt3-13b", with_schedule(mesh(2, 16, 1, 8), "zero_bubble"), 16, 1, "dgx-a100"},
    {"gpt3-175b", with_schedule(mesh(16, 2, 1, 8), "zero_bubble"), 1, 128, "dgx-a100"},
    // Of one block data ranks add gradients up behind the last backward pass, of more beside it.
    {"gpt3-2.7b", with_schedule(mesh(4, 24, 1, 1, 1), "zero_bubble"), 1, 4, "dgx-h100"},
    {"gpt3-175b", mesh(16, 16, 1, 8, 1), 4, 64, "dgx-h100", 0, 0,
     0.04},  // what tensor ranks send is not computed again
};

// What is computed again fills the memory, as much as must be and no more (compile/fill_budget.h).
const Case kWithinBudgets[] = {
    {"gpt3-13b", mesh(1, 2, 4, 1, 2), 32, 2},  // parameters that are gathered once take no part of the budget
    {"gpt3-13b", mesh(1, 256, 2, 1, 2), 8, 4, "dgx-h100"},
    {"gpt3-6.7b", mesh(1, 32, 4, 1, 1), 16, 8, "dgx-h100"},
    {"gpt3-6.7b", mesh(1, 64, 1, 1, 1), 8, 4, "dgx-a100"},
    {"gpt3-6.7b", mesh(1, 128, 1, 2, 2), 16, 4, "dgx-a100"},  // logits of all tokens
    {"gpt3-13b", mesh(1, 8, 1, 4, 2), 16, 4, "dgx-a100"},
    {"gpt3-6.7b", with_buckets(mesh(1, 48, 1, 1, 3), 160), 4, 1, "dgx-a100"},  // 48 divides few matrices
    {"gpt3-175b", with_buckets(mesh(1, 1024, 1, 1, 3), 1440), 2, 8, "dgx-h100"},
    {"gpt3-175b", with_buckets(mesh(1, 3072, 1, 1, 3), 1440), 1, 1, "dgx-a100"},
    {"gpt3-175b", interleaved(mesh(8, 8, 1, 4, 1)), 1, 128, "dgx-h100"},
    {"gpt3-175b", mesh(16, 6, 1, 2, 1), 1, 512, "dgx-a100"},  // the first stage's update has more than its passes
};

// A program without CUDA does not know a GPU's kernels, but its rates.
Platform platform_of(const ClusterConfig& cluster) {
  return cuda::is_built() ? cuda::nominal_platform(cluster.gpu) : platform_of_rates(cluster.gpu);
}

void expect_close(std::span<const Case> cases) {
  for (const Case& c : cases) {
    ClusterConfig cluster = read_cluster(c.cluster);
    RunConfig config;
    config.model = preset(c.model);
    config.model.dropout = c.dropout;
    if (c.context > 0) config.model.context = c.context;
    ParallelLayout layout{.mesh = c.mesh, .micro_batch = c.micro_batch, .micro_batches = c.micro_batches};
    Platform platform = platform_of(cluster);
    Estimate told = estimate(config, layout, cluster, platform);
    CompiledLayout exact = compile_layout(config, told.layout, cluster, platform);
    std::string what = fmt::format("{} on {}: {}", c.model, c.cluster, describe(told.layout));
    EXPECT_NEAR(told.time.total() / exact.seconds, 1, c.close) << what;
    EXPECT_NEAR(told.memory.total() / exact.bytes, 1, c.close) << what;
  }
}

// Its attention is what GPUs other than Hopper's have, and heads of 80.
bool has_cudnn() { return cuda::is_built() && cuda::library_versions().find("no cuDNN") == std::string::npos; }

TEST(Estimate, IsCloseToWhatIsCompiled) {
  if (!cuda::is_built()) GTEST_SKIP() << "built without CUDA, whose kernels a step is compiled for";
  expect_close(kCases);
}

TEST(Estimate, IsCloseOverThousandsOfRanks) {
  if (!has_cudnn()) GTEST_SKIP() << "built without cuDNN, whose kernels a step is compiled for";
  expect_close(kLargeWorlds);
}

TEST(Estimate, IsCloseInPipelines) {
  if (!has_cudnn()) GTEST_SKIP() << "built without cuDNN, whose kernels a step is compiled for";
  expect_close(kPipelines);
}

TEST(Estimate, IsCloseWhereMuchIsComputedAgain) {
  if (!has_cudnn()) GTEST_SKIP() << "built without cuDNN, whose kernels a step is compiled for";
  expect_close(kWithinBudgets);
}

// Whether ranks add gradients up beside the last micro-batch, the compiler chooses by what that takes, and it may
// choose otherwise for a few blocks than for a few more.
TEST(Estimate, IsCloseWhateverIsChosenForTheLastMicroBatch) {
  ClusterConfig cluster = read_cluster("dgx-a100");
  Platform platform = platform_of_rates(cluster.gpu);
  RunConfig config;
  config.model = preset("gpt2-124m");
  config.model.layers = 20;
  ParallelLayout layout{.mesh = mesh(1, 2, 2, 1, 1), .micro_batch = 4, .micro_batches = 4};
  for (double bandwidth : {240e9, 30e9, 27e9, 25e9, 23e9, 21e9, 15e9}) {  // of 22 to 28 GB/s the choices differ
    cluster.within.bandwidth.value = bandwidth;
    Estimate told = estimate(config, layout, cluster, platform);
    CompiledLayout exact = compile_layout(config, told.layout, cluster, platform);
    EXPECT_NEAR(told.time.total() / exact.seconds, 1, 0.03) << bandwidth;
    EXPECT_NEAR(told.memory.total() / exact.bytes, 1, 0.03) << bandwidth;
  }
}

// Nothing here is said in advise/: another optimizer, family, precision and mesh are those of the compiler.
TEST(Estimate, KnowsWhatTheCompilerKnows) {
  ClusterConfig cluster = read_cluster("h200");
  Platform platform(gpu_target(gpu_rates(cluster.gpu)));
  ParallelLayout layout{.mesh = mesh(1, 2, 1, 2), .micro_batch = 4, .micro_batches = 4};
  auto told = [&](const std::function<void(RunConfig&, MeshConfig&)>& change) {
    RunConfig config;
    config.model = preset("gpt2-774m");
    config.model.layers = 10;
    ParallelLayout changed = layout;
    change(config, changed.mesh);
    Estimate one = estimate(config, changed, cluster, platform);
    CompiledLayout exact = compile_layout(config, changed, cluster, platform);
    EXPECT_NEAR(one.time.total() / exact.seconds, 1, 0.02);
    EXPECT_NEAR(one.memory.total() / exact.bytes, 1, 0.02);
    return one;
  };
  Estimate usual = told([](RunConfig&, MeshConfig&) {});
  Estimate sgd = told([](RunConfig& config, MeshConfig&) { config.optimizer.name = "sgd"; });
  EXPECT_LT(sgd.memory.optimizer, 0.6 * usual.memory.optimizer);
  Estimate whole = told([](RunConfig&, MeshConfig& mesh) { mesh.sequence = false; });
  EXPECT_NE(whole.time.total(), usual.time.total());
}

// As an H200 took: docs/plan.md#predicted-and-measured.
TEST(Estimate, DropoutTakesItsTime) {
  ClusterConfig h200 = read_cluster("h200");
  RunConfig config, dropping;
  config.model = dropping.model = preset("gpt2-124m");
  dropping.model.dropout = 0.1;
  ParallelLayout layout{.mesh = mesh(1, 1, 1, 1), .micro_batch = 64};
  Platform platform = platform_of(h200);
  double without = estimate(config, layout, h200, platform).time.total(),
         with = estimate(dropping, layout, h200, platform).time.total();
  EXPECT_NEAR(with - without, 4.9e-3, 1e-3);
}

TEST(Estimate, ComputesAgainOnlyWhatDoesNotFit) {
  ClusterConfig h200 = read_cluster("h200");
  RunConfig config;
  config.model = preset("gpt2-1558m");
  ParallelLayout layout{.mesh = mesh(1, 1, 1, 1), .micro_batch = 32};
  Platform platform = platform_of(h200);
  Estimate fits = estimate(config, layout, h200, platform);
  EXPECT_EQ(fits.layout.budget_gib, 0);
  EXPECT_EQ(fits.time.recomputed, 0);
  layout.micro_batch = 64;
  Estimate full = estimate(config, layout, h200, platform);
  EXPECT_GT(full.layout.budget_gib, 0);
  EXPECT_GT(full.time.recomputed, 0);
  EXPECT_LE(full.memory.total(), h200.gpu.memory_bytes.value);
  layout.micro_batch = 4096;
  EXPECT_GT(estimate(config, layout, h200, platform).memory.total(), h200.gpu.memory_bytes.value);
}

// The first micro-batch goes through all stages, and the last gradient back: what else a stage waits is the bubble.
TEST(Estimate, OfAPipelineTellsTransfersFromTheBubble) {
  ClusterConfig h200 = read_cluster("h200");
  RunConfig config;
  config.model = preset("gpt2-124m");
  TimeByKind time =
      estimate(config, {.mesh = mesh(4, 1, 1, 1), .micro_batch = 2, .micro_batches = 8}, h200, platform_of(h200)).time;
  double bytes = 2.0 * 2 * double(config.model.context * config.model.width);
  EXPECT_GE(time.pipe, 2 * 3 * (bytes / h200.within.bandwidth.value + h200.within.latency.value));
  EXPECT_GT(time.bubble, time.pipe);
}

// The first stage has the least room, as it has the table of tokens. With 64 sequences it alone is too full, with 96
// others are, too.
TEST(Estimate, AllStagesHaveTheBudgetOfTheFullest) {
  ClusterConfig h200 = read_cluster("h200");
  RunConfig config;
  config.model = preset("gpt2-1558m");
  ParallelLayout layout{.mesh = mesh(4, 1, 1, 1), .micro_batch = 64, .micro_batches = 16};
  double alone = estimate(config, layout, h200, platform_of(h200)).layout.budget_gib;
  EXPECT_GT(alone, 0);
  layout.micro_batch = 96;
  Estimate told = estimate(config, layout, h200, platform_of(h200));
  EXPECT_LE(told.layout.budget_gib, alone);
  EXPECT_LE(told.memory.total(), usable_bytes(h200, layout.mesh));
}

TEST(Estimate, ZeroDividesWhatItSays) {
  ClusterConfig h200 = read_cluster("h200");
  RunConfig config;
  config.model = preset("gpt2-1558m");
  auto of = [&](int64_t zero) {
    ParallelLayout layout{.mesh = mesh(1, 4, 1, 1, zero), .micro_batch = 4, .micro_batches = 4};
    return estimate(config, layout, h200, platform_of(h200)).memory;
  };
  EXPECT_NEAR(of(1).optimizer * 4 / of(0).optimizer, 1, 1e-3);
  EXPECT_EQ(of(1).gradients, of(0).gradients);
  EXPECT_NEAR(of(2).gradients * 4 / of(1).gradients, 1, 1e-3);
  EXPECT_EQ(of(2).weights, of(1).weights);
  EXPECT_LT(of(3).weights * 2, of(2).weights) << "a whole copy in bf16";
}

}  // namespace
}  // namespace tokamak
