#include "advise/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/command_line.h"
#include "config/validate.h"
#include "config/visit.h"

namespace tokamak {
namespace {

TEST(Layouts, AreAllThatTheProgramTakes) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 96, .context = 64, .vocab = 100};
  std::vector<ParallelLayout> layouts = all_layouts(config, 4, 4, 16);
  std::set<std::string> names;
  for (const ParallelLayout& layout : layouts) {
    EXPECT_EQ(layout.gpus(), 4);
    EXPECT_EQ(layout.micro_batch * layout.micro_batches * layout.mesh.data, 16);
    EXPECT_TRUE(names.insert(describe(layout)).second) << describe(layout) << " is there twice";
    validate(run_of(config, layout));  // throws where a run would be refused
  }
  for (const char* name : {"data 4, ZeRO 3, micro-batch 1 x 4", "pipe 2 x data 2, zero_bubble, micro-batch 2 x 4",
                           "data 2 x tensor 2, micro-batch 8 x 1", "context 4, micro-batch 16 x 1"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// Ranks divide its heads of keys, too, of which there are fewer.
TEST(Layouts, OfAFamilyWithHeadsOfKeys) {
  RunConfig config;
  config.model = {.family = "llama", .layers = 2, .heads = 8, .width = 64, .context = 64, .vocab = 100, .kv_heads = 2};
  std::set<int64_t> tensor;
  for (const ParallelLayout& layout : all_layouts(config, 8, 8, 16)) {
    validate(run_of(config, layout));
    tensor.insert(layout.mesh.tensor);
  }
  EXPECT_EQ(tensor, (std::set<int64_t>{1, 2}));
}

// Of very many GPUs, too, it takes no time: no axis is tried beyond what the model allows.
TEST(Layouts, OfAMachineOfVeryManyGpus) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 96, .context = 64, .vocab = 100};
  constexpr int64_t kGpus = int64_t(1) << 40;
  for (const ParallelLayout& layout : all_layouts(config, kGpus, kGpus, kGpus)) EXPECT_LE(layout.mesh.tensor, 6);
}

TEST(Layouts, TheirOptionsGiveTheSameRun) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 96, .context = 64, .vocab = 100};
  for (ParallelLayout layout : all_layouts(config, 4, 4, 16)) {
    layout.budget_gib = 12.25;
    RunConfig expected = run_of(config, layout), said = config;
    std::vector<std::string> arguments;
    std::string options = options_of(layout, config.model.context);
    for (size_t begin = 0; begin < options.size();) {
      size_t end = std::min(options.find(' ', begin), options.size());
      arguments.push_back(options.substr(begin, end - begin));
      begin = end + 1;
    }
    FieldList list;
    list.config(said);
    std::vector<Field> fields = std::move(list).take();
    read_options(fields, arguments);
    EXPECT_EQ(said.mesh.pipe, expected.mesh.pipe) << options;
    EXPECT_EQ(std::max<int64_t>(said.mesh.data, 1), expected.mesh.data) << options;
    EXPECT_EQ(said.mesh.context, expected.mesh.context) << options;
    EXPECT_EQ(said.mesh.tensor, expected.mesh.tensor) << options;
    EXPECT_EQ(said.mesh.zero, expected.mesh.zero) << options;
    EXPECT_EQ(said.mesh.interleave, expected.mesh.interleave) << options;
    bool may_have_slots = expected.mesh.pipe * expected.mesh.data > 1;
    EXPECT_EQ(said.mesh.slots, may_have_slots ? 1 : 0) << options;
    EXPECT_EQ(said.mesh.bucket_mib, expected.mesh.bucket_mib) << options;
    EXPECT_EQ(said.train.batch, expected.train.batch) << options;
    EXPECT_EQ(said.train.total_batch, expected.train.total_batch) << options;
    EXPECT_EQ(said.compile.memory_budget_gib, expected.compile.memory_budget_gib) << options;
  }
}

TEST(Layouts, HaveTheChunksThatAreSaid) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 96, .context = 64, .vocab = 100};
  config.mesh.chunk_layers = "2,1,2,1";
  std::vector<ParallelLayout> layouts = all_layouts(config, 4, 4, 16);
  ASSERT_FALSE(layouts.empty());
  for (const ParallelLayout& layout : layouts) {
    EXPECT_EQ(layout.mesh.pipe * layout.mesh.interleave, 4) << describe(layout);
    EXPECT_NE(options_of(layout, 64).find("--mesh.chunk_layers=2,1,2,1"), std::string::npos);
  }
}

TEST(Layouts, OfLargeMatricesHaveBucketsForThem) {
  RunConfig config;
  config.model = {.layers = 32, .heads = 32, .width = 4096, .context = 2048, .vocab = 50257};
  for (const ParallelLayout& layout : all_layouts(config, 4, 4, 256))
    EXPECT_EQ(layout.mesh.bucket_mib, layout.mesh.zero < 3 ? 50 : 160 / layout.mesh.tensor) << describe(layout);
}

TEST(Layouts, HaveMicroBatchesOfEverySizeThatDivides) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 96, .context = 64, .vocab = 100};
  std::set<int64_t> sizes;
  for (const ParallelLayout& layout : all_layouts(config, 1, 1, 12)) sizes.insert(layout.micro_batch);
  EXPECT_EQ(sizes, (std::set<int64_t>{1, 2, 3, 4, 6, 12}));
}

TEST(Layouts, CarryWhatTheRunSaysOfItsMesh) {
  RunConfig config;
  config.model = {.layers = 6, .heads = 6, .width = 96, .context = 64, .vocab = 100};
  config.mesh.sequence = false;
  config.mesh.mailbox_mib = 0;
  config.mesh.bucket_mib = 7;
  std::vector<ParallelLayout> layouts = all_layouts(config, 4, 4, 16);
  EXPECT_FALSE(layouts.empty());
  for (const ParallelLayout& layout : layouts) {
    std::string options = options_of(layout, config.model.context);
    for (const char* said : {"--mesh.sequence=false", "--mesh.mailbox_mib=0", "--mesh.bucket_mib=7"})
      EXPECT_NE(options.find(said), options.npos) << options;
  }
}

}  // namespace
}  // namespace tokamak
