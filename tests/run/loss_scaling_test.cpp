// Training in fp16 from end to end on the CPU: overflow, recovery, and the loss that fp32 has.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "run/session.h"
#include "run/trainer.h"
#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

RunConfig config_of(Precision precision, double loss_scale, int64_t micro_batches = 1) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 31};
  config.optimizer.weight_decay = 0;
  config.train.batch = 2;
  config.train.total_batch = micro_batches * 2 * 8;
  config.compile.precision = precision;
  config.compile.loss_scale = loss_scale;
  return config;
}

std::vector<Batch> batches_of(const Session& session) {
  std::vector<Batch> batches(static_cast<size_t>(session.micro_batches()));
  for (Batch& batch : batches) {
    batch.tokens.resize(16);
    std::iota(batch.tokens.begin(), batch.tokens.end(), 3);
    batch.targets.resize(16);
    std::iota(batch.targets.begin(), batch.targets.end(), 4);
  }
  return batches;
}

std::vector<StepResult> run(const RunConfig& config, int64_t steps) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  session.initialise();
  std::vector<StepResult> results;
  for (int64_t step = 0; step < steps; ++step) results.push_back(session.run_step(batches_of(session), step, 1e-2));
  return results;
}

TEST(Fp16, TrainsAsFp32Does) {
  for (int64_t micro_batches : {1, 2}) {
    std::vector<StepResult> low = run(config_of(Precision::kFp16, 65536, micro_batches), 12);
    std::vector<StepResult> full = run(config_of(Precision::kFp32, 65536, micro_batches), 12);
    for (size_t i = 0; i < low.size(); ++i) {
      EXPECT_NEAR(low[i].loss, full[i].loss, 0.02) << "step " << i;
      EXPECT_NEAR(low[i].grad_norm, full[i].grad_norm, 0.02 * full[i].grad_norm) << "step " << i;
      EXPECT_EQ(low[i].loss_scale, 65536);
      EXPECT_EQ(low[i].skipped, 0);
      EXPECT_FALSE(full[i].loss_scale || full[i].skipped);
    }
    EXPECT_LT(low.back().loss, 0.7 * low.front().loss);
  }
}

// As many steps are lost as the scale has to be halved; until then nothing changes, so the loss stays.
TEST(Fp16, RecoversFromAScaleThatOverflows) {
  for (int64_t micro_batches : {1, 2}) {
    std::vector<StepResult> results = run(config_of(Precision::kFp16, 1e9, micro_batches), 30);
    size_t first_good = 0;
    while (first_good < results.size() && !std::isfinite(results[first_good].grad_norm)) ++first_good;
    ASSERT_GT(first_good, 2u);
    ASSERT_LT(first_good, 25u);
    for (size_t i = 0; i <= first_good; ++i) {
      EXPECT_EQ(results[i].loss, results[0].loss) << "step " << i;
      EXPECT_EQ(*results[i].loss_scale, double(float(1e9)) / std::pow(2, i));
    }
    EXPECT_EQ(*results[first_good].skipped, int64_t(first_good));
    EXPECT_LT(results.back().loss, results[0].loss);
    EXPECT_TRUE(std::isfinite(results.back().grad_norm));
  }
}

// Of everything that a session holds, by name.
std::map<std::string, std::vector<std::byte>> read_store(const TensorStore& store) {
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const std::string& name : store.names()) {
    if (store.spec(name).role == Role::kWeights) continue;  // made anew in each step
    std::vector<std::byte>& bytes = tensors[name];
    bytes.resize(size_t(num_bytes(store.type(name))));
    store.read(name, bytes.data(), int64_t(bytes.size()));
  }
  return tensors;
}

// In every precision a step whose gradients are not finite leaves everything as it was, and the next one goes on.
TEST(Session, AppliesNoUpdateThatIsNotFinite) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16})
    for (int64_t micro_batches : {1, 2}) {
      SCOPED_TRACE(precision_name(precision));
      std::unique_ptr<Backend> backend = cpu::make_backend();
      Session session = make_session(config_of(precision, 65536, micro_batches), cpu::nominal_platform(), *backend);
      session.initialise();
      EXPECT_TRUE(session.run_step(batches_of(session), 0, 1e-2).applied);
      std::vector<float> bias(16), bad(16, std::nanf(""));
      session.store().read("h.0.ln_1.bias", bias.data(), 64);
      session.store().write("h.0.ln_1.bias", bad.data(), 64);
      auto before = read_store(session.store());
      StepResult result = session.run_step(batches_of(session), 1, 1e-2);
      EXPECT_FALSE(result.applied);
      EXPECT_FALSE(std::isfinite(result.grad_norm));
      for (const auto& [name, bytes] : read_store(session.store()))
        if (!name.starts_with("scaler.")) EXPECT_TRUE(before.at(name) == bytes) << name;
      session.store().write("h.0.ln_1.bias", bias.data(), 64);
      EXPECT_TRUE(session.run_step(batches_of(session), 2, 1e-2).applied);
      float steps = 0;
      session.store().read("step", &steps, sizeof steps);
      EXPECT_EQ(steps, 2);
    }
}

// Of both halves of train.seed.
TEST(Session, DropoutGoesByTheWholeSeed) {
  auto losses = [](int64_t seed) {
    RunConfig config = config_of(Precision::kFp32, 65536);
    config.model.dropout = 0.5;
    config.train.seed = seed;
    std::unique_ptr<Backend> backend = cpu::make_backend();
    Session session = make_session(config, cpu::nominal_platform(), *backend);
    InitialValues same(session.parameters(), 1);
    session.initialise(same);
    return session.run_step(batches_of(session), 0, 1e-2).loss;
  };
  EXPECT_EQ(losses(1), losses(1));
  EXPECT_NE(losses(1), losses(2));
  EXPECT_NE(losses(1), losses(1 + (int64_t(1) << 32)));
  EXPECT_NE(losses(1 + (int64_t(1) << 32)), losses(1 + (int64_t(2) << 32)));
}

class Silent : public TrainObserver {
 public:
  void message(const std::string& text) override { messages += text; }
  void step(const StepMetrics& metrics, int64_t, double) override { last = metrics; }
  void sample(int64_t, const std::string&) override {}
  void saved(int64_t, const std::filesystem::path&) override {}
  std::string messages;
  StepMetrics last;
};

TEST(Fp16, SkippedStepsAreNoDivergence) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.compile.precision = Precision::kFp16;
  config.compile.loss_scale = 1e7;
  Silent observer;
  auto backend = cpu::make_backend();
  train(config, cpu::nominal_platform(), *backend, observer, [] { return false; });
  EXPECT_EQ(observer.last.step, config.train.steps);
  EXPECT_GT(observer.last.skipped.value_or(0), 0);
  EXPECT_TRUE(std::isfinite(observer.last.grad_norm));
}

TEST(Fp16, ARunThatOnlyOverflowsEndsWithAnError) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.compile.precision = Precision::kFp16;
  config.compile.loss_scale = 65536;
  config.optimizer.lr = 1e6;  // what the first steps leave behind is beyond f16
  config.optimizer.warmup_steps = 0;
  config.train.steps = 200;
  Silent observer;
  auto backend = cpu::make_backend();
  expect_user_error([&] { train(config, cpu::nominal_platform(), *backend, observer, [] { return false; }); },
                    {"overflow even at a loss scale of", "--compile.precision=bf16"});
}

TEST(Tf32, MeansFp32WithoutUnitsForIt) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.train.steps = 1;
  config.compile.precision = Precision::kTf32;
  Silent observer;
  auto backend = cpu::make_backend();
  train(config, cpu::nominal_platform(), *backend, observer, [] { return false; });
  EXPECT_NE(observer.messages.find("compile.precision = tf32 means fp32 here"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
