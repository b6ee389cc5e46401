#include "model/model.h"

#include "config/field.h"
#include "config/model_config.h"
#include "config/preset.h"
#include "config/visit.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// GPT-2 124M by hand: 50257 x 768 token embeddings; 12 blocks of 12 x 768 x 768 weights, 13 x 768 other parameters;
// a final norm of 2 x 768; 1024 x 768 positions, which do not count.
constexpr int64_t kCounted = 50257 * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768;

TEST(Model, CountsTheWeightsThatATokenMeets) {
  EXPECT_EQ(kCounted, 123'653'376);
  ModelConfig model;
  EXPECT_EQ(flops_per_token(model).multiplied_parameters, kCounted);
  EXPECT_EQ(count_parameters(model), kCounted + 1024 * 768);
  model.tie_weights = false;  // one of the two matrices is only looked up
  EXPECT_EQ(flops_per_token(model).multiplied_parameters, kCounted);
}

TEST(Model, FlopsPerTokenOfAKnownModel) {
  FlopsPerToken flops = flops_per_token(ModelConfig());
  EXPECT_DOUBLE_EQ(flops.full, 6.0 * 123'653'376 + 12.0 * 12 * 768 * 1024);  // 855,166,464
  EXPECT_DOUBLE_EQ(flops.full, 855'166'464);
  EXPECT_DOUBLE_EQ(flops.causal, 798'543'360);
}

// Llama 3 8B by hand: 128256 x 4096 twice, of which one is looked up; 32 blocks of 4096 x (4096 + 2 x 1024) for
// queries, keys and values, 4096 x 4096, 3 x 4096 x 14336 and two norms; a final norm.
TEST(Model, CountsLlama3) {
  ModelConfig model{.preset = "llama3-8b"};
  apply_preset(model);
  constexpr int64_t kBlock = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 2 * 4096;
  constexpr int64_t kMultiplied = 128256 * 4096 + 32 * kBlock + 4096;
  EXPECT_EQ(count_parameters(model), 8'030'261'248);
  EXPECT_EQ(count_parameters(model), kMultiplied + 128256 * 4096);
  FlopsPerToken flops = flops_per_token(model);
  EXPECT_EQ(flops.multiplied_parameters, kMultiplied);
  EXPECT_DOUBLE_EQ(flops.full - flops.causal, 6.0 * 32 * 4096 * 8192);
  model.window = 2048;  // a token sees 2048 of the others, those of the first 2048 half of them
  EXPECT_DOUBLE_EQ(flops_per_token(model).causal - 6.0 * kMultiplied, 12.0 * 32 * 4096 * (2048 - 256));
}

TEST(Model, FamiliesTakeTheParametersThatTheyList) {
  for (const ModelFamily* family : model_families()) {
    ModelConfig model{
        .family = std::string(family->name), .layers = 2, .heads = 2, .width = 8, .context = 6, .vocab = 11};
    for (const Graph& graph : {forward_graph("step", model, 2, 6, true), eval_graph(model, 2, 6),
                               prefill_graph(model, 2, 3, DType::kF32), decode_graph(model, 2, DType::kBF16)}) {
      verify(graph);
      std::vector<std::string> taken, listed;
      for (const Argument& a : graph.arguments())
        if (a.kind == Argument::Kind::kParameter) taken.push_back(a.name + to_string(graph.shape(a.value)));
      for (const ParameterInfo& info : model_parameters(model)) listed.push_back(info.name + to_string(info.shape));
      EXPECT_EQ(taken, listed) << family->name << " " << graph.name();
    }
  }
}

TEST(Model, RefusesAnUnknownFamilyAndNamesTheKnown) {
  ModelConfig model;
  model.family = "gpt-2";
  expect_user_error([&] { count_parameters(model); },
                    {"[model.family] expected a known family (gpt2", "got 'gpt-2'; did you mean 'gpt2'?"});
}

TEST(Model, HelpNamesEveryFamily) {
  ModelConfig model;
  std::vector<Field> fields = fields_of(model);
  for (const ModelFamily* family : model_families())
    EXPECT_NE(find_field(fields, "family")->help.find(family->name), std::string::npos) << family->name;
}

}  // namespace
}  // namespace tokamak
