// Training steps on ranks that are threads, against one rank.
#include "tests/mesh/train_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tokamak::test {
namespace {

RunConfig tiny() {
  RunConfig config = tiny_mesh_run();
  config.optimizer.warmup_steps = 1;
  config.optimizer.lr = 1e-2;
  config.optimizer.eps = 1e-3;  // else Adam divides by gradients that are almost zero, and all noise counts
  return config;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-5 * std::max(1.0, std::fabs(expected[i])));
}

void expect_same(const Outcome& got, const Outcome& expected) {
  expect_near(got.losses, expected.losses);
  expect_near(got.norms, expected.norms);
  EXPECT_NEAR(mean(got.evaluated), mean(expected.evaluated), 1e-5);
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (const auto& [name, values] : expected.tensors) {
    ASSERT_TRUE(got.tensors.contains(name)) << name;
    double difference = 0;
    for (size_t i = 0; i < values.size(); ++i)
      difference = std::max(difference, double(std::fabs(got.tensors.at(name)[i] - values[i])));
    EXPECT_LT(difference, 2e-6) << name;
  }
}

struct Case {
  int64_t data = 1, context = 1, tensor = 1, zero = 0;
  int64_t micro_batches = 1;
  double dropout = 0;
  int64_t pipe = 1;
  std::string schedule = "1f1b";
  int64_t interleave = 1;
  bool documents = false;
  bool sums_with_last = false;  // mesh.reduce_gradients=last
  std::string chunk_layers = "";
};

std::string name_of(const Case& c) {
  std::string name = fmt::format("data{}_context{}_tensor{}_zero{}", c.data, c.context, c.tensor, c.zero);
  if (c.micro_batches > 1) name += fmt::format("_micro{}", c.micro_batches);
  if (c.dropout > 0) name += "_dropout";
  if (c.documents) name += "_documents";
  if (c.pipe > 1) name += fmt::format("_pipe{}_{}", c.pipe, c.schedule);
  if (c.sums_with_last) name += "_last";
  if (!c.chunk_layers.empty()) name += "_chunks" + c.chunk_layers;
  std::replace(name.begin(), name.end(), ',', '_');
  return name;
}

void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

class MeshOfThreads : public testing::TestWithParam<Case> {};

TEST_P(MeshOfThreads, TrainsAsOneRankDoes) {
  const Case& c = GetParam();
  RunConfig config = tiny();
  config.train.total_batch = c.micro_batches * config.train.batch * config.model.context;
  config.model.dropout = c.dropout;
  config.data.mask_documents = c.documents;
  if (c.pipe > 1) config.model.layers = 4;
  Outcome expected = train_steps(config, nullptr);
  config.mesh = {.pipe = c.pipe, .data = c.data, .context = c.context, .tensor = c.tensor, .zero = c.zero};
  config.mesh.schedule = c.schedule;
  config.mesh.interleave = c.interleave;
  config.mesh.chunk_layers = c.chunk_layers;
  if (c.dropout > 0 || c.sums_with_last) config.mesh.slots = 1;  // slots draw numbers of their own: slots_test.cpp
  if (c.sums_with_last) config.mesh.reduce_gradients = "last";
  Mesh mesh = step_mesh(config.mesh);
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    Outcome got = train_steps(config, &ranks);
    expect_near(got.losses, expected.losses);
    if (ranks.rank() == 0) expect_same(got, expected);
  });
}

const Case kCases[] = {
    {2, 1, 1, 0},
    {2, 1, 1, 1},
    {2, 1, 1, 2},
    {2, 1, 1, 3},
    {4, 1, 1, 3},
    {8, 1, 1, 0},
    {1, 2, 1, 0},
    {1, 4, 1, 0},
    {1, 1, 2, 0},
    {1, 1, 4, 0},
    {2, 1, 2, 0},
    {2, 2, 1, 3},
    {2, 2, 2, 3},
    {2, 2, 2, 1},
    {2, 1, 1, 0, 2},
    {2, 1, 1, 2, 4},
    {2, 1, 2, 3, 2},
    {.data = 2, .context = 2, .tensor = 2, .zero = 1, .dropout = 0.1},
    {.context = 2, .dropout = 0.1, .documents = true},
    {.context = 4, .documents = true},
    {.data = 2, .context = 2, .tensor = 2, .dropout = 0.1, .documents = true},
    {.context = 2, .micro_batches = 2, .dropout = 0.1, .pipe = 2, .documents = true},
    {.micro_batches = 4, .pipe = 2, .schedule = "gpipe"},
    {.micro_batches = 5, .pipe = 2, .schedule = "1f1b"},
    {.micro_batches = 4, .pipe = 2, .schedule = "interleaved", .interleave = 2},
    {.micro_batches = 6, .pipe = 4, .schedule = "zero_bubble"},
    {.micro_batches = 1, .pipe = 4, .schedule = "1f1b"},
    {.micro_batches = 3,
     .dropout = 0.1,
     .pipe = 6,
     .schedule = "1f1b",
     .documents = true,
     .chunk_layers = "0,1,1,1,1,0"},
    {.micro_batches = 3, .pipe = 3, .schedule = "interleaved", .interleave = 2, .chunk_layers = "0,1,1,1,1,0"},
    {.data = 2,
     .tensor = 2,
     .zero = 3,
     .micro_batches = 2,
     .pipe = 2,
     .schedule = "zero_bubble",
     .chunk_layers = "4,0"},
    {.micro_batches = 4, .dropout = 0.1, .pipe = 2, .schedule = "zero_bubble"},
    {.data = 2, .zero = 3, .micro_batches = 2, .pipe = 2, .schedule = "1f1b"},
    {.data = 2, .tensor = 2, .zero = 1, .micro_batches = 4, .pipe = 2, .schedule = "1f1b"},
    {.context = 2, .micro_batches = 2, .pipe = 2, .schedule = "interleaved", .interleave = 2},
    {.tensor = 2, .documents = true},
    {.data = 2, .micro_batches = 4, .sums_with_last = true},
    {.data = 4, .zero = 1, .micro_batches = 2, .sums_with_last = true},
    {.data = 2,
     .context = 2,
     .tensor = 2,
     .zero = 1,
     .micro_batches = 3,
     .dropout = 0.1,
     .documents = true,
     .sums_with_last = true},
    {.data = 2, .micro_batches = 4, .pipe = 2, .schedule = "1f1b", .sums_with_last = true},
    {.data = 2, .zero = 1, .micro_batches = 1, .pipe = 2, .schedule = "1f1b", .sums_with_last = true},
    {.data = 3, .zero = 1, .micro_batches = 4, .pipe = 2, .schedule = "zero_bubble", .sums_with_last = true},
    {.data = 2,
     .tensor = 2,
     .zero = 1,
     .micro_batches = 2,
     .dropout = 0.1,
     .pipe = 2,
     .schedule = "interleaved",
     .interleave = 2,
     .sums_with_last = true},
};

// Sums of micro-batches are added over ranks in one order, in whichever program that is.
void expect_same_bits_beside_the_last(RunConfig config) {
  config.train.total_batch = 4 * config.train.batch * config.model.context;
  config.mesh.slots = 1;
  Mesh mesh = step_mesh(config.mesh);
  std::vector<Outcome> outcomes(2);
  for (bool with_last : {false, true}) {
    config.mesh.reduce_gradients = with_last ? "last" : "update";
    run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
      MeshRanks ranks(mesh, world);
      Outcome got = train_steps(config, &ranks);
      if (ranks.rank() == 0) outcomes[size_t(with_last)] = got;
    });
  }
  EXPECT_EQ(outcomes[0].losses, outcomes[1].losses);
  EXPECT_EQ(outcomes[0].tensors, outcomes[1].tensors);
}

TEST(MeshOfThreads, ReducesGradientsBesideTheLastMicroBatchToTheSameBits) {
  RunConfig config = tiny();
  for (int64_t zero : {0, 1}) {
    config.mesh = {.data = 2, .zero = zero};
    expect_same_bits_beside_the_last(config);
  }
}

TEST(MeshOfThreads, ReducesGradientsBesideAStagesLastBackwardPassToTheSameBits) {
  RunConfig config = tiny();
  config.model.layers = 4;
  for (const char* schedule : {"1f1b", "interleaved", "zero_bubble"}) {
    config.mesh = {.pipe = 2, .data = 2, .zero = 1, .schedule = schedule};
    config.mesh.interleave = config.mesh.schedule == "interleaved" ? 2 : 1;
    expect_same_bits_beside_the_last(config);
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, MeshOfThreads, testing::ValuesIn(kCases),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tokamak::test
