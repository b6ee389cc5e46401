// Ten AdamW steps of whole models against PyTorch's fp32 values, on the GPU, in every precision and pass setting.
#include "config/config.h"
#include "run/session.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/model/golden.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

// Of a loss, relative to the first one; of the gradient's norm likewise; of a parameter after the steps, relative to
// its tensor's maximum (0: not compared: Adam turns the sign of a rounding error into a full step).
struct Closeness {
  double loss, norm, after;
};
Closeness closeness_of(Precision precision) {
  if (precision == Precision::kFp32) return {1e-5, 5e-5, 2e-4};
  if (precision == Precision::kTf32) return {3e-3, 1e-2, 0};
  return {1e-2, 5e-2, 0};
}

struct Setting {
  const char* name;
  void (*change)(CompileConfig&);
};

const Setting kSettings[] = {
    {"all on", [](CompileConfig&) {}},
    {"all off",
     [](CompileConfig& c) {
       c.disable_passes = {"fuse", "flash_attention", "pad_vocab", "fused_optimizer", "chunked_classifier"};
       c.cuda_graph = false;
     }},
    {"no fuse", [](CompileConfig& c) { c.disable_passes = {"fuse"}; }},
    {"no flash attention", [](CompileConfig& c) { c.disable_passes = {"flash_attention"}; }},
    {"no padded vocabulary", [](CompileConfig& c) { c.disable_passes = {"pad_vocab"}; }},
    {"no fused optimizer", [](CompileConfig& c) { c.disable_passes = {"fused_optimizer"}; }},
    {"no chunked classifier", [](CompileConfig& c) { c.disable_passes = {"chunked_classifier"}; }},
};

void take_steps(const Golden& golden, const CompileConfig& compile, int64_t micro_batches) {
  RunConfig config;
  config.model = golden.model();
  config.optimizer = golden.optimizer();
  config.compile = compile;
  config.compile.loss_scale = 64;  // such small models have gradients too large for the usual one
  config.train.batch = golden.batch() / micro_batches;
  if (micro_batches > 1) config.train.total_batch = golden.batch() * golden.model().context;
  Session session = make_session(config, gpu_platform(), gpu_backend());
  session.initialise();  // the loss scale, too
  for (const ParameterInfo& info : gpt_parameters(golden.model())) {
    std::vector<float> values = golden.floats("param." + info.name);
    session.store().write(info.name, values.data(), int64_t(values.size()) * 4);
  }
  Closeness close = closeness_of(compile.precision);
  std::vector<float> losses = golden.floats("losses"), norms = golden.floats("grad_norms");
  for (int64_t step = 0; step < golden.steps(); ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < micro_batches; ++i)
      batches.push_back(golden.batch_of(step, i * config.train.batch, config.train.batch));
    StepResult result = session.run_step(batches, step, golden.optimizer().lr);
    ASSERT_NEAR(result.loss, losses[size_t(step)], close.loss * losses[0]) << "step " << step;
    ASSERT_NEAR(result.grad_norm, norms[size_t(step)], close.norm * norms[0]) << "step " << step;
  }
  if (close.after == 0) return;
  for (const ParameterInfo& info : gpt_parameters(golden.model())) {
    std::vector<float> got(size_t(num_elements(info.shape))), expected = golden.floats("after." + info.name);
    session.store().read(info.name, got.data(), int64_t(got.size()) * 4);
    if (has_noise(info.name)) got = without_noise(got), expected = without_noise(expected);
    ASSERT_TRUE(close_to(info.name, got, expected, close.after));
  }
}

class GpuGolden : public ::testing::TestWithParam<std::tuple<const char*, Precision>> {};

TEST_P(GpuGolden, TakesTenSteps) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  auto [name, precision] = GetParam();
  Golden golden(name);
  for (const Setting& setting : kSettings) {
    SCOPED_TRACE(setting.name);
    CompileConfig compile;
    setting.change(compile);
    compile.precision = precision;
    take_steps(golden, compile, 1);
    if (HasFatalFailure()) return;
  }
  SCOPED_TRACE("two micro-batches");
  CompileConfig compile;
  compile.precision = precision;
  take_steps(golden, compile, 2);
}

INSTANTIATE_TEST_SUITE_P(All, GpuGolden,
                         ::testing::Combine(::testing::Values("gpt2_tiny", "gpt2_tiny_untied_nobias"),
                                            ::testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16,
                                                              Precision::kFp16)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              precision_name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tokamak::test
