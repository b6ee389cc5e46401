#include "config/field.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/file.h"
#include "config/config.h"
#include "config/preset.h"
#include "config/visit.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(Fields, KeysAreThoseOfTheFrozenList) {
  RunConfig config;
  std::string keys;
  for (const Field& field : fields_of(config)) keys += field.key + "\n";
  EXPECT_EQ(keys, read_file("tests/config/keys.txt"))
      << "Keys are a promise to users: add new ones to tests/config/keys.txt on purpose; do not rename or remove them.";
}

TEST(Fields, EveryFieldHasHelpAndADefaultThatObeysItsRule) {
  RunConfig config;
  for (const Field& field : fields_of(config)) {
    EXPECT_FALSE(field.help.empty()) << field.key;
    EXPECT_LE(field.help.size(), 90u) << field.key;
    EXPECT_NO_THROW(check_rule(field, field.key));
  }
}

/// Bytes of a struct that no field covers: the padding after its flags, or a member that visit() forgot.
template <class T>
size_t uncovered_bytes() {
  T config;
  size_t covered = 0;
  for (const Field& field : fields_of(config)) {
    covered += std::visit([](auto* target) { return sizeof(*target); }, field.target);
  }
  return sizeof(T) - covered;
}

TEST(Fields, EveryMemberIsVisited) {
  EXPECT_LT(uncovered_bytes<ModelConfig>(), 3 * sizeof(int64_t));  // it has flags in four places
  EXPECT_LT(uncovered_bytes<DataConfig>(), sizeof(int64_t));
  EXPECT_LT(uncovered_bytes<OptimizerConfig>(), sizeof(int64_t));
  EXPECT_LT(uncovered_bytes<TrainConfig>(), 4 * sizeof(int64_t));  // and in four
  EXPECT_LT(uncovered_bytes<CompileConfig>(), sizeof(int64_t));
}

TEST(Fields, WholeNumbersAreNumbersButNotTheOtherWayRound) {
  RunConfig config;
  std::vector<Field> fields = fields_of(config);
  set(*find_field(fields, "optimizer.lr"), int64_t(1), "x");
  EXPECT_EQ(config.optimizer.lr, 1.0);
  expect_user_error([&] { set(*find_field(fields, "train.steps"), 1.5, "run.toml:3: train.steps"); },
                    {"[run.toml:3: train.steps] expected a whole number of at least 0, got 1.5"});
  EXPECT_EQ(config.train.steps, 1000) << "a refused value must not change anything";
}

TEST(Fields, RangesSayTheirEnds) {
  RunConfig config;
  std::vector<Field> fields = fields_of(config);
  auto refuse = [&](const char* key, Value value, const char* message) {
    expect_user_error([&] { set(*find_field(fields, key), value, key); }, {message});
  };
  refuse("model.layers", int64_t(-3), "[model.layers] expected a whole number from 1 to 10000, got -3");
  refuse("train.seed", 18446744073709551616.0,
         "expected a whole number of at least 0, at most 9223372036854775807, got");
  refuse("model.dropout", 1.0, "[model.dropout] expected a number from 0 up to but not including 1, got 1.0");
  refuse("optimizer.eps", int64_t(0), "[optimizer.eps] expected a number from 1e-30 to 1e+30, got 0");
  refuse("compile.memory_budget_gib", std::numeric_limits<double>::quiet_NaN(),
         "[compile.memory_budget_gib] expected a number of at least 0");
  refuse("compile.precision", std::string("fp4"), "expected auto, fp32, tf32, bf16, fp16 or fp8, got the text \"fp4\"");
  refuse("model.bias", std::string("yes"), "[model.bias] expected true or false, got the text \"yes\"");
  refuse("train.out", true, "[train.out] expected text, got true");
}

TEST(Fields, APrecisionIsOneOfItsWords) {
  RunConfig config;
  std::vector<Field> fields = fields_of(config);
  const Field& field = *find_field(fields, "compile.precision");
  for (std::string_view word : kPrecisionNames) {
    set(field, std::string(word), "test");
    EXPECT_EQ(precision_name(config.compile.precision), word);
    EXPECT_EQ(std::get<std::string>(get(field)), word);
  }
  EXPECT_EQ(parse_precision("tf32"), Precision::kTf32);
  expect_user_error([] { parse_precision("fp4"); },
                    {"[precision] expected auto, fp32, tf32, bf16, fp16, fp8, got 'fp4'"});
}

TEST(Presets, AreGpt2sSizes) {
  struct {
    const char* name;
    int64_t layers, heads, width;
  } expected[] = {{"gpt2-124m", 12, 12, 768},
                  {"gpt2-355m", 24, 16, 1024},
                  {"gpt2-774m", 36, 20, 1280},
                  {"gpt2-1558m", 48, 25, 1600},
                  {"gpt3-6.7b", 32, 32, 4096}};
  for (const auto& size : expected) {
    ModelConfig model{.preset = size.name};
    apply_preset(model);
    EXPECT_EQ(model.layers, size.layers) << size.name;
    EXPECT_EQ(model.heads, size.heads) << size.name;
    EXPECT_EQ(model.width, size.width) << size.name;
  }
  ModelConfig small{.preset = "small", .kv_heads = 2, .window = 7, .qk_norm = true};
  apply_preset(small);
  EXPECT_EQ(small.vocab, 0) << "the data's";
  EXPECT_TRUE(small.kv_heads == 0 && small.window == 0 && !small.qk_norm) << "nothing is left of what was before";
  ModelConfig model{.preset = "gpt2-124"};
  expect_user_error([&] { apply_preset(model); }, {"did you mean 'gpt2-124m'?"});
}

TEST(Presets, OfModernHaveItsPieces) {
  ModelConfig model{.preset = "modern-124m"};
  apply_preset(model);
  EXPECT_EQ(model.family, "modern");
  EXPECT_EQ(model.width_of_head(), 128);
  EXPECT_EQ(model.mlp_width(), 4 * 768) << "without a gate";
  EXPECT_TRUE(model.qk_norm && model.zero_init && model.embedding_norm && !model.tie_weights && !model.norm_weights);
  EXPECT_EQ(model.softcap, 15);
  model.activation = "silu";
  EXPECT_EQ(model.mlp_width(), 2048);
}

TEST(ModelConfig, WindowsOfLayersFollowThePattern) {
  ModelConfig model{.family = "modern", .layers = 6, .window = 9, .window_pattern = "SSL"};
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < model.layers; ++layer) windows.push_back(model.window_of(layer));
  EXPECT_EQ(windows, (std::vector<int64_t>{9, 9, 0, 9, 9, 0}));
  model.family = "llama";
  EXPECT_EQ(model.window_of(2), 9) << "a pattern is modern's";
}

TEST(ModelConfig, WindowsGrowFromAQuarterToTheirLength) {
  ModelConfig model{.family = "modern", .window_warmup_steps = 6};
  EXPECT_EQ(model.window_share(0), 0.25);
  EXPECT_EQ(model.window_share(2), 0.5);
  EXPECT_EQ(model.window_share(6), 1);
  EXPECT_EQ(model.window_share(1000), 1);
  EXPECT_EQ(ModelConfig().window_share(0), 1);
}

TEST(ModelConfig, ValueEmbeddingsCountFromTheLastLayer) {
  ModelConfig model{.layers = 5, .value_embeddings = 2};
  std::vector<bool> has;
  for (int64_t layer = 0; layer < 5; ++layer) has.push_back(model.has_value_embedding(layer));
  EXPECT_EQ(has, (std::vector<bool>{true, false, true, false, true}));
  model.value_embeddings = 0;
  EXPECT_FALSE(model.has_value_embedding(4));
}

TEST(Presets, AreThoseOfLlamaAndItsRelatives) {
  ModelConfig largest{.preset = "llama3-405b"};
  apply_preset(largest);
  EXPECT_EQ(largest.layers, 126);
  EXPECT_EQ(largest.mlp_width(), 53248);
  ModelConfig llama{.preset = "llama3-70b"}, qwen{.preset = "qwen3-0.6b"}, mistral{.preset = "mistral-7b"};
  for (ModelConfig* model : {&llama, &qwen, &mistral}) apply_preset(*model);
  EXPECT_EQ(llama.family, "llama");
  EXPECT_EQ(llama.kv_heads, 8);
  EXPECT_EQ(llama.mlp_width(), 28672);
  EXPECT_EQ(llama.rope_theta, 500000);
  EXPECT_FALSE(llama.tie_weights);
  EXPECT_EQ(qwen.width_of_head(), 128);
  EXPECT_TRUE(qwen.qk_norm && qwen.tie_weights && !qwen.qkv_bias);
  EXPECT_EQ(mistral.window, 4096);
}

}  // namespace
}  // namespace tokamak
