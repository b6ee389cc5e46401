#include "config/model_config.h"
#include "model/gpt.h"

#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak {
namespace {

ModelConfig tiny() {
  ModelConfig model;
  model.layers = 2;
  model.heads = 2;
  model.width = 8;
  model.context = 6;
  model.vocab = 11;
  return model;
}

TEST(GptParameters, CountsThoseOfGpt2) {
  ModelConfig model;  // the defaults are GPT-2 124M
  EXPECT_EQ(count_parameters(model), 124439808);
  model.layers = 24, model.heads = 16, model.width = 1024;
  EXPECT_EQ(count_parameters(model), 354823168);
}

TEST(GptParameters, HaveHuggingFaceNamesInForwardOrder) {
  std::vector<ParameterInfo> list = gpt_parameters(tiny());
  ASSERT_EQ(list.size(), size_t(2 + 2 * 12 + 2));
  EXPECT_EQ(list[0].name, "wte.weight");
  EXPECT_EQ(list[1].name, "wpe.weight");
  EXPECT_EQ(list[4].name, "h.0.attn.c_attn.weight");
  EXPECT_EQ(list[4].shape, (Shape{8, 24}));
  EXPECT_EQ(list.back().name, "ln_f.bias");
  ModelConfig other = tiny();
  other.bias = false;
  other.tie_weights = false;
  list = gpt_parameters(other);
  ASSERT_EQ(list.size(), size_t(2 + 2 * 6 + 1 + 1));
  EXPECT_EQ(list.back().name, "lm_head.weight");
}

TEST(GptParameters, DecayMatricesOnlyAndScaleResidualProjections) {
  for (const ParameterInfo& info : gpt_parameters(tiny())) {
    EXPECT_EQ(info.decay, info.shape.size() == 2) << info.name;
    double expected = info.shape.size() < 2 ? 0 : info.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(4.0) : 0.02;
    EXPECT_DOUBLE_EQ(info.init_std, expected) << info.name;
    bool gain = info.shape.size() == 1 && info.name.ends_with(".weight");
    EXPECT_EQ(info.init_value, gain ? 1 : 0) << info.name;
  }
}

TEST(InitParameter, IsNormalAndDependsOnSeedAndPlace) {
  ParameterInfo info{"w", {300, 301}, 0.02, 0, true};
  std::vector<float> a = init_parameter(info, 3, 7);
  ASSERT_EQ(a.size(), size_t(300 * 301));
  double mean = 0, square = 0, fourth = 0;
  for (float v : a) mean += v, square += double(v) * v, fourth += std::pow(v, 4);
  double n = double(a.size()), variance = square / n;
  EXPECT_NEAR(mean / n, 0, 3e-4);
  EXPECT_NEAR(std::sqrt(variance), 0.02, 2e-4);
  EXPECT_NEAR(fourth / n / (variance * variance), 3, 0.1);  // a normal's kurtosis
  EXPECT_EQ(a, init_parameter(info, 3, 7));
  EXPECT_NE(a, init_parameter(info, 4, 7));
  EXPECT_NE(a, init_parameter(info, 3, 8));
  EXPECT_EQ(init_parameter({"g", {3}, 0, 1}, 0, 1), std::vector<float>(3, 1.0f));
}

TEST(Gpt, RefusesSequencesLongerThanItsContext) {
  expect_user_error([] { gpt_eval_graph(tiny(), 1, 7); },
                    {"[gpt] expected sequences of at most model.context = 6 tokens, got 7"});
}

}  // namespace
}  // namespace tokamak
