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

TEST(GptParameters, ScaleResidualProjections) {
  for (const ParameterInfo& info : gpt_parameters(tiny())) {
    double expected = info.shape.size() < 2 ? 0 : info.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(4.0) : 0.02;
    EXPECT_DOUBLE_EQ(info.init_std, expected) << info.name;
    bool gain = info.shape.size() == 1 && info.name.ends_with(".weight");
    EXPECT_EQ(info.init_value, gain ? 1 : 0) << info.name;
  }
}

TEST(GptParameters, SayWhereTheyStandInTheModel) {
  ModelConfig model = tiny();
  model.tie_weights = false;
  for (const ParameterInfo& info : gpt_parameters(model)) {
    auto named = [&](std::string_view end) { return info.name.ends_with(end); };
    Role expected = named("wte.weight")                                         ? Role::kEmbedding
                    : named("wpe.weight")                                       ? Role::kPosition
                    : named("lm_head.weight")                                   ? Role::kClassifier
                    : named("attn.c_attn.weight") || named("mlp.c_fc.weight")   ? Role::kColumn
                    : named("attn.c_attn.bias") || named("mlp.c_fc.bias")       ? Role::kColumnBias
                    : named("attn.c_proj.weight") || named("mlp.c_proj.weight") ? Role::kRow
                                                                                : Role::kVector;
    EXPECT_EQ(info.role, expected) << info.name;
    EXPECT_EQ(is_matrix(info.role), info.shape.size() == 2) << info.name;
    EXPECT_EQ(info.blocks, info.name.find("c_attn") == std::string::npos ? 1 : 3) << info.name;
  }
}

}  // namespace
}  // namespace tokamak
