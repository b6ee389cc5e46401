#include "ops/sample_token.h"
#include "ops/sampler.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

Attrs attrs(int64_t vocab, int64_t places) { return {{"places", places}, {"vocab", vocab}}; }

// Settings are drawn from ranges of which each gives one kind of choice: temperature below and top_k from `top_k` on.
std::vector<CaseInput> inputs(int64_t B, int64_t V, double low, double high) {
  return {f32({B, V}, -4, 4), i32({B}, 0, 9), i32({B}, 0, 99), i32({B, 2}, -99, 99), f32({3}, low, high)};
}

}  // namespace

std::vector<OpCase> sample_token_cases() {
  return {
      {"Likeliest", &op::sample_token, inputs(3, 70, 0, 0), attrs(70, 10), 0},
      {"Some", &op::sample_token, inputs(4, 300, 0.5, 0.9), attrs(290, 5), 0},
      {"All", &op::sample_token, inputs(4, 300, 1, 1), attrs(300, 5), 0},
  };
}

namespace {

std::vector<HostTensor> run(std::vector<double> logits, std::vector<double> settings) {
  auto vocab = int64_t(logits.size());
  return evaluate({"", &op::sample_token, inputs(1, vocab, 0, 1), attrs(vocab, 10)},
                  {std::move(logits), {4}, {6}, {3, 1}, std::move(settings)});
}

TEST(SampleToken, ChoosesAsTheSamplerDoes) {
  std::vector<float> logits{0, 2, 1, 3, -1};
  for (double temperature : {0.0, 0.7, 2.0}) {
    auto y = run({0, 2, 1, 3, -1}, {temperature, 4, 0.95});
    SamplingOptions options{temperature, 4, 0.95};
    EXPECT_EQ(y[0][0], sample(logits, options, sampling_uniform(sampling_seed(3, 1), 6)));
    EXPECT_EQ(y[1][0], 5);
    EXPECT_EQ(y[2][0], 7);
  }
}

TEST(SampleToken, HasNoTokenForBrokenLogits) {
  for (double broken : {double(NAN), double(INFINITY)}) EXPECT_EQ(run({1, broken, 2}, {1, 0, 1})[0][0], kNoToken);
}

TEST(SampleToken, RefusesWrongShapes) {
  expect_refused({"", &op::sample_token, inputs(2, 7, 0, 1), attrs(8, 5)}, "expected a vocabulary of 1 to 7, got 8");
  auto wrong = inputs(2, 7, 0, 1);
  wrong[3] = i32({2}, 0, 1);
  expect_refused({"", &op::sample_token, wrong, attrs(7, 5)}, "expected input 3 to be i32[2,2], got i32[2]");
}

}  // namespace
}  // namespace tokamak::test
