// The same bits on any number of data ranks, with every ZeRO stage: ranks that are threads, CPU kernels.
#include "train/session.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "base/random.h"
#include "data/document_starts.h"
#include "passes/step_mesh.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

namespace tokamak::test {
namespace {

constexpr int64_t kSequences = 16, kSteps = 3;

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 4, .width = 32, .context = 16, .vocab = 61};
  config.optimizer.clip = 0.5;
  config.train.batch = kSequences;
  config.train.seed = 5;
  config.compile.precision = Precision::kFp32;
  config.mesh.slots = 8;
  config.threads = 1;
  return config;
}

// Rows of the step's sequences, which are the same however they are divided.
Batch batch_of(const RunConfig& config, int64_t step, int64_t index) {
  Batch batch;
  int64_t size = config.train.batch * config.model.context;
  for (int64_t i = index * size; i < (index + 1) * size; ++i) {
    auto random = philox4x32(uint64_t(step), uint64_t(i));
    batch.tokens.push_back(int32_t(random[0] % uint32_t(config.model.vocab)));
    batch.targets.push_back(int32_t(random[1] % uint32_t(config.model.vocab)));
    if (!config.data.mask_documents) continue;
    bool ends = random[2] % 5 == 0;
    if (ends) batch.targets.back() = kNoTarget;
    int64_t at = i % config.model.context;
    batch.documents.push_back(at == 0 || ends ? int32_t(at) : batch.documents.back());
  }
  return batch;
}

// Losses and norms of the steps, losses of the slots of one more without training, and all parameters and states.
struct Outcome {
  std::vector<double> numbers, evaluated;
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
    for (int64_t i = 0; i < session.micro_batches(); ++i) batches.push_back(batch_of(session.config(), step, i));
    StepResult result = session.run_step(batches, step, 1e-2);
    outcome.numbers.insert(outcome.numbers.end(), {result.loss, result.grad_norm});
  }
  for (int64_t i = 0; i < session.micro_batches(); ++i) {
    std::vector<double> losses = session.evaluate(batch_of(session.config(), kSteps, i));
    outcome.evaluated.insert(outcome.evaluated.end(), losses.begin(), losses.end());
  }
  const TensorStore& store = session.store();
  for (const std::string& name : store.names()) {
    if (is_scratch(store.layout(name).role)) continue;
    std::vector<float> values(size_t(num_elements(store.layout(name).global)));
    store.read_whole(name, values.data());
    outcome.tensors[name] = std::move(values);
  }
  return outcome;
}

Outcome train_on_mesh(const RunConfig& config) {
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() == 1) return train_steps(config, nullptr);
  Outcome first;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    Outcome outcome = train_steps(config, &ranks);
    if (ranks.rank() == 0) first = std::move(outcome);
  });
  return first;
}

// The names of what differs in a bit.
std::string differing(const Outcome& a, const Outcome& b) {
  std::string names;
  if (a.numbers != b.numbers) names += "losses or norms; ";
  if (a.evaluated != b.evaluated) names += "evaluated losses; ";
  EXPECT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, values] : a.tensors)
    if (std::memcmp(values.data(), b.tensors.at(name).data(), values.size() * sizeof(float)) != 0) names += name + "; ";
  return names;
}

void expect_same_bits_on_any_mesh(RunConfig config, std::initializer_list<int64_t> stages = {0, 1, 2, 3}) {
  config.mesh.data = 1;
  Outcome expected = train_on_mesh(config);
  for (int64_t data : {2, 4, 8})
    for (int64_t zero : stages) {
      config.mesh.data = data;
      config.mesh.zero = zero;
      EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << data << " ranks, zero " << zero;
    }
}

TEST(Slots, GiveTheSameBitsOnAnyNumberOfRanks) { expect_same_bits_on_any_mesh(tiny()); }

TEST(Slots, GiveTheSameBitsInLowPrecision) {
  RunConfig config = tiny();
  config.compile.precision = Precision::kBf16;
  expect_same_bits_on_any_mesh(config, {0, 3});
  config.compile.precision = Precision::kFp16;
  expect_same_bits_on_any_mesh(config, {1, 2});
}

TEST(Slots, GiveTheSameBitsWithDropoutAndMasks) {
  RunConfig config = tiny();
  config.model.dropout = 0.2;
  config.data.mask_documents = true;
  expect_same_bits_on_any_mesh(config, {0, 2});
}

TEST(Slots, GiveTheSameBitsBesideOtherAxes) {
  RunConfig config = tiny();
  config.mesh = {.data = 1, .context = 2, .tensor = 2, .slots = 4};
  Outcome expected = train_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {0, 1, 2, 3}) {
    config.mesh.zero = zero;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "zero " << zero;
  }
}

// Within rounding of a sum in another order: it is the same step.
TEST(Slots, AreTheStepOfTheWholeBatch) {
  RunConfig config = tiny();
  Outcome slots = train_on_mesh(config);
  config.mesh.slots = 1;
  Outcome whole = train_on_mesh(config);
  for (size_t i = 0; i < whole.numbers.size(); ++i) EXPECT_NEAR(slots.numbers[i], whole.numbers[i], 1e-5);
  double mean = std::accumulate(slots.evaluated.begin(), slots.evaluated.end(), 0.0) / double(slots.evaluated.size());
  EXPECT_NEAR(mean, whole.evaluated.at(0), 1e-5);
  EXPECT_NE(differing(slots, whole), "") << "else the tests above show nothing";
}

}  // namespace
}  // namespace tokamak::test
