// Steps whose samples hold several documents, on the GPU against the CPU, and what must not change a bit.
#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "data/document_starts.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

constexpr int32_t kEnd = 7;

RunConfig masked_run(Precision precision) {
  RunConfig config = small_run();
  config.data.mask_documents = true;
  config.train.total_batch = 2 * config.train.batch * config.model.context;
  config.compile.precision = precision;
  return config;
}

// Documents from a few tokens to several blocks of attention.
std::vector<Batch> masked_batches(const RunConfig& config, int64_t step) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < 2; ++i) {
    Batch& batch = batches.emplace_back(random_batch(config, uint64_t(2 * step + i)));
    for (size_t t = 0; t < batch.tokens.size(); ++t)
      if (batch.tokens[t] % (i ? 90 : 9) == 0) batch.tokens[t] = kEnd;
    batch.documents = document_starts(batch.tokens, config.model.context, kEnd);
    hide_first_tokens(batch.tokens, kEnd, batch.targets);
  }
  return batches;
}

RunTrace train_masked(const RunConfig& config, const Platform& platform, Backend& backend) {
  Session session = make_session(config, platform, backend);
  session.initialise();
  RunTrace trace;
  for (int64_t step = 0; step < 6; ++step) {
    StepResult result = session.run_step(masked_batches(config, step), step, config.optimizer.lr);
    trace.losses.push_back(result.loss);
    trace.norms.push_back(result.grad_norm);
  }
  trace.tensors = read_store(session.store());
  return trace;
}

RunTrace train_masked_on_gpu(const RunConfig& config) {
  return train_masked(config, tune(config, gpu_platform(), gpu_backend()), gpu_backend());
}

TEST(GpuDocuments, TrainAsOnTheCpu) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  std::unique_ptr<Backend> cpu = cpu::make_backend();
  RunTrace expected = train_masked(masked_run(Precision::kFp32), cpu::nominal_platform(), *cpu);
  for (Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16})
    for (bool flash : {true, false}) {
      RunConfig config = masked_run(precision);
      if (!flash) config.compile.disable_passes = {"flash_attention"};
      RunTrace got = train_masked_on_gpu(config);
      double near = precision == Precision::kFp32 ? 1e-4 : 2e-2;
      for (size_t i = 0; i < expected.losses.size(); ++i) {
        EXPECT_NEAR(got.losses[i], expected.losses[i], near * expected.losses[0])
            << precision_name(precision) << ' ' << flash;
        EXPECT_NEAR(got.norms[i], expected.norms[i], 5 * near * expected.norms[0])
            << precision_name(precision) << ' ' << flash;
      }
    }
}

TEST(GpuDocuments, RecordingAndAnotherRunHaveTheSameBits) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  RunConfig config = masked_run(Precision::kBf16), launched = config;
  launched.compile.cuda_graph = false;
  RunTrace first = train_masked_on_gpu(config);
  expect_same_bits(first, train_masked_on_gpu(config));
  expect_same_bits(first, train_masked_on_gpu(launched));
}

}  // namespace
}  // namespace tokamak::test
