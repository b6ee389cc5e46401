// Generation on a GPU: what a step is made of (without a GPU), and the text that it gives.
#include "backend/cuda/cuda_backend.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/generated_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

RunConfig config_of(Precision precision) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 64, .context = 48, .vocab = 301};
  config.train.batch = 1;
  config.compile.precision = precision;
  return config;
}

std::string kernels_of(const Plan& plan) {
  std::string text;
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    text += fmt::format("{} {}\n", node.op->name, to_string(plan.graph.type(node.outputs[0])));
  }
  return text;
}

// Five kernels a layer, of which four read a matrix: a step is bound by those.
TEST(GenerationStep, IsFewKernelsThatReadTheWeightsOnce) {
  RunConfig config = config_of(Precision::kBf16);
  Platform platform = cuda::nominal_platform();
  auto plan_of = [&](int64_t layers) {
    config.model.layers = layers;
    return compile_generation(decode_graph(config.model, 1, DType::kBF16), resolve(config, platform.target), platform)
        .plan;
  };
  Plan one = plan_of(1), three = plan_of(3);
  EXPECT_EQ(three.launches.size() - one.launches.size(), 2 * 5u) << kernels_of(one);
  EXPECT_LE(one.launches.size(), 5 + 5u) << kernels_of(one);
  EXPECT_TRUE(one.copies.empty());
  for (const Launch& launch : one.launches)
    EXPECT_TRUE(platform.kernels->has_kernel(one.graph, one.graph.nodes()[size_t(launch.node)])) << kernels_of(one);
}

struct GpuText {
  explicit GpuText(Precision precision)
      : config(config_of(precision)), session(make_session(config, platform, gpu_backend())) {
    write_large_weights(session);
  }
  std::vector<std::vector<int32_t>> generate(const std::vector<GenerationRow>& texts, const SamplingOptions& options,
                                             int64_t rows = 4) {
    Generator generator(resolve(config, platform.target), platform, gpu_backend(), rows, &session.store());
    generator.take_weights();
    return generator.generate(texts, 70, options);
  }

  RunConfig config;
  Platform platform = cuda::nominal_platform();
  Session session;
};

std::vector<GenerationRow> some_texts() {
  std::vector<GenerationRow> texts;
  for (int64_t length : {1, 20, 48}) texts.push_back({some_tokens(length, length), length});
  return texts;
}

TEST(GpuGenerate, GivesTheTextOfTheFullPass) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  GpuText text(Precision::kFp32);
  FullPass full(text.config, text.platform, gpu_backend(), text.session.store());
  auto generated = text.generate(some_texts(), {.temperature = 0});
  for (size_t r = 0; r < generated.size(); ++r)
    EXPECT_EQ(generated[r], full.continue_text(some_texts()[r].prompt, 70)) << "row " << r;
}

TEST(GpuGenerate, ATextDoesNotDependOnThoseBesideIt) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
    GpuText text(precision);
    std::vector<GenerationRow> texts = some_texts();
    auto together = text.generate(texts, {.temperature = 0.9, .top_k = 50, .top_p = 0.95});
    EXPECT_EQ(text.generate(texts, {.temperature = 0.9, .top_k = 50, .top_p = 0.95}), together);
    texts[0].prompt = some_tokens(31, 5);
    texts.pop_back();
    auto others = text.generate(texts, {.temperature = 0.9, .top_k = 50, .top_p = 0.95});
    EXPECT_EQ(others[1], together[1]);
    EXPECT_NE(others[0], together[0]);
  }
}

TEST(GpuGenerate, IsMostlyTheTextOfTheFullPassInBf16) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  GpuText text(Precision::kBf16);
  FullPass full(text.config, text.platform, gpu_backend(), text.session.store());
  std::vector<int32_t> tokens = some_tokens(5);
  auto generated = text.generate({{tokens, 1}}, {.temperature = 0}, 1)[0];
  int same = 0;  // sums in another order may turn a near tie
  for (size_t i = 0; i < 40; ++i) {
    same += full.next(tokens) == generated[i];
    tokens.push_back(generated[i]);
  }
  EXPECT_GE(same, 34);
}

}  // namespace
}  // namespace tokamak::test
