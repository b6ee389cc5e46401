// Training steps on ranks that are threads, against one rank.
#include "train/session.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "base/random.h"
#include "passes/step_mesh.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace tokamak::test {
namespace {

constexpr int64_t kSteps = 3;

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 4, .width = 32, .context = 16, .vocab = 61};
  config.optimizer.warmup_steps = 1;
  config.optimizer.lr = 1e-2;
  config.optimizer.eps = 1e-3;  // else Adam divides by gradients that are almost zero, and all noise counts
  config.train.batch = 8;
  config.train.seed = 5;
  config.compile.precision = Precision::kFp32;
  config.threads = 1;
  return config;
}

Batch random_batch(const RunConfig& config, uint64_t seed) {
  Batch batch;
  for (int64_t i = 0; i < config.train.batch * config.model.context; ++i) {
    batch.tokens.push_back(int32_t(philox4x32(seed, uint64_t(i))[0] % uint32_t(config.model.vocab)));
    batch.targets.push_back(int32_t(philox4x32(seed, uint64_t(i))[1] % uint32_t(config.model.vocab)));
  }
  return batch;
}

// What a run gives: losses and norms of its steps, the loss of another batch, and all parameters and states.
struct Outcome {
  std::vector<double> losses, norms;
  double evaluated = 0;
  std::map<std::string, std::vector<float>> tensors;
};

Outcome train_steps(const RunConfig& config, const MeshRanks* ranks) {
  auto backend = cpu::make_backend();
  set_num_threads(1);  // ranks share the cores
  Session session(config, cpu::nominal_platform(1), *backend, 0, ranks);
  session.initialise();
  Outcome outcome;
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < session.micro_batches(); ++i)
      batches.push_back(random_batch(config, uint64_t(100 * step + i)));
    StepResult result = session.run_step(batches, step, 1e-2);
    outcome.losses.push_back(result.loss);
    outcome.norms.push_back(result.grad_norm);
  }
  std::vector<double> evaluated = session.evaluate(random_batch(config, 999));
  outcome.evaluated = std::accumulate(evaluated.begin(), evaluated.end(), 0.0) / double(evaluated.size());
  const TensorStore& store = session.store();
  for (const std::string& name : store.names()) {
    if (is_scratch(store.layout(name).role)) continue;
    std::vector<float> values(size_t(num_elements(store.layout(name).global)));
    store.read_whole(name, values.data());
    outcome.tensors[name] = std::move(values);
  }
  return outcome;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-5 * std::max(1.0, std::fabs(expected[i])));
}

void expect_same(const Outcome& got, const Outcome& expected) {
  expect_near(got.losses, expected.losses);
  expect_near(got.norms, expected.norms);
  EXPECT_NEAR(got.evaluated, expected.evaluated, 1e-5);
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
  int64_t data, context, tensor, zero;
  int64_t micro_batches = 1;
  Precision precision = Precision::kFp32;
  double dropout = 0;
};

std::string name_of(const Case& c) {
  std::string name = fmt::format("data{}_context{}_tensor{}_zero{}", c.data, c.context, c.tensor, c.zero);
  if (c.micro_batches > 1) name += fmt::format("_micro{}", c.micro_batches);
  if (c.dropout > 0) name += "_dropout";
  return name;
}

void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

class MeshOfThreads : public testing::TestWithParam<Case> {};

TEST_P(MeshOfThreads, TrainsAsOneRankDoes) {
  const Case& c = GetParam();
  RunConfig config = tiny();
  config.train.total_batch = c.micro_batches * config.train.batch * config.model.context;
  config.model.dropout = c.dropout;
  Outcome expected = train_steps(config, nullptr);
  config.mesh = {.data = c.data, .context = c.context, .tensor = c.tensor, .zero = c.zero};
  if (c.dropout > 0) config.mesh.slots = 1;  // slots draw numbers of their own: tests/mesh/slots_test.cpp
  Mesh mesh = step_mesh(config.mesh);
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    Outcome got = train_steps(config, &ranks);
    expect_near(got.losses, expected.losses);
    if (ranks.rank() == 0) expect_same(got, expected);
  });
}

constexpr Case kCases[] = {
    {2, 1, 1, 0},
    {2, 1, 1, 1},
    {2, 1, 1, 2},
    {2, 1, 1, 3},
    {4, 1, 1, 3},
    {8, 1, 1, 0},
    {1, 2, 1, 0},
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
};

INSTANTIATE_TEST_SUITE_P(Meshes, MeshOfThreads, testing::ValuesIn(kCases),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tokamak::test
