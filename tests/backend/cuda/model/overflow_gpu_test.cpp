// FP16's loss scaling on the device: an overflow skips exactly its update, and training goes on.
#include "config/config.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

StepResult step_of(Session& session, const RunConfig& config, int64_t step) {
  Batch batch = random_batch(config, uint64_t(step));
  return session.run_step({&batch, 1}, step, config.optimizer.lr);
}

void write_scale(Session& session, float scale) { session.store().write("scaler.scale", &scale, sizeof scale); }

float read_float(Session& session, const std::string& name) {
  float value = 0;
  session.store().read(name, &value, sizeof value);
  return value;
}

TEST(GpuOverflow, SkipsExactlyItsUpdateAndRecovers) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  RunConfig config = small_run();
  config.compile.precision = Precision::kFp16;
  Session session = make_session(config, gpu_platform(), gpu_backend());
  session.initialise();
  for (int64_t step = 0; step < 3; ++step) step_of(session, config, step);
  EXPECT_EQ(read_float(session, "scaler.skipped"), 0);
  float good_scale = read_float(session, "scaler.scale");

  auto before = read_store(session.store());
  write_scale(session, 0x1p60f);  // every gradient overflows
  step_of(session, config, 3);
  auto after = read_store(session.store());
  for (const auto& [name, bytes] : before) {
    bool kept = name.starts_with("scaler.") || bytes == after.at(name);
    EXPECT_TRUE(kept) << name << " changed in a skipped step";
  }
  EXPECT_EQ(read_float(session, "scaler.skipped"), 1);
  EXPECT_EQ(read_float(session, "scaler.scale"), 0x1p59f);

  write_scale(session, good_scale);
  StepResult next = step_of(session, config, 4);
  EXPECT_TRUE(std::isfinite(next.loss) && std::isfinite(next.grad_norm));
  EXPECT_EQ(read_float(session, "scaler.skipped"), 1);
  EXPECT_EQ(read_float(session, "step"), 4);  // of five steps, one was none
}

// Without loss scaling as well.
TEST(GpuOverflow, AppliesNoUpdateThatIsNotFinite) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    SCOPED_TRACE(precision_name(precision));
    RunConfig config = small_run();
    config.compile.precision = precision;
    Session session = make_session(config, gpu_platform(), gpu_backend());
    session.initialise();
    EXPECT_TRUE(step_of(session, config, 0).applied);
    const char* name = "h.0.ln_1.bias";
    std::vector<float> bias(size_t(config.model.width)), bad(bias.size(), NAN);
    auto bytes = int64_t(bias.size() * sizeof(float));
    session.store().read(name, bias.data(), bytes);
    session.store().write(name, bad.data(), bytes);
    auto before = read_store(session.store());
    EXPECT_FALSE(step_of(session, config, 1).applied);
    EXPECT_TRUE(before == read_store(session.store()));
    session.store().write(name, bias.data(), bytes);
    EXPECT_TRUE(step_of(session, config, 2).applied);
    EXPECT_EQ(read_float(session, "step"), 2);
  }
}

// What compute-sanitizer runs: every kernel of a training step, small.
TEST(GpuSanitized, AStepInEveryPrecision) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16})
    for (double dropout : {0.0, 0.1}) {
      RunConfig config = small_run();
      config.model = {.layers = 1, .heads = 2, .width = 128, .context = 64, .vocab = 203};
      config.model.dropout = dropout;
      config.train.batch = 2;
      config.compile.precision = precision;
      RunTrace trace = train_small(config, 2);
      EXPECT_TRUE(std::isfinite(trace.losses.back())) << precision_name(precision);
    }
}

}  // namespace
}  // namespace tokamak::test
