#include "base/json.h"
#include "config/model_config.h"
#include "model/hugging_face.h"
#include "model/llama.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::json;

constexpr const char* kSizes =
    R"("num_hidden_layers": 3, "num_attention_heads": 6, "hidden_size": 48, "vocab_size": 301, "intermediate_size": 40)";

ModelConfig read(const std::string& type, const std::string& more = "") {
  std::string text = fmt::format(R"({{"model_type": "{}", {}{}{}}})", type, kSizes, more.empty() ? "" : ", ", more);
  return llama_hugging_face.read_config(parse_json(text), "config.json");
}

ModelConfig base() {
  return {.family = "llama",
          .layers = 3,
          .heads = 6,
          .width = 48,
          .context = 17,
          .vocab = 301,
          .kv_heads = 2,
          .hidden = 40};
}

void expect_same(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(a.vocab, b.vocab);
  EXPECT_EQ(a.num_kv_heads(), b.num_kv_heads());
  EXPECT_EQ(a.width_of_head(), b.width_of_head());
  EXPECT_EQ(a.mlp_width(), b.mlp_width());
  EXPECT_EQ(a.window, b.window);
  EXPECT_EQ(a.tie_weights, b.tie_weights);
  EXPECT_EQ(a.qkv_bias, b.qkv_bias);
  EXPECT_EQ(a.qk_norm, b.qk_norm);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.rope_theta, b.rope_theta);
  EXPECT_EQ(a.rope_scaling, b.rope_scaling);
  if (b.rope_scaling == "none") return;
  EXPECT_EQ(a.rope_factor, b.rope_factor);
  if (b.rope_scaling != "llama3") return;
  EXPECT_EQ(a.rope_low_freq, b.rope_low_freq);
  EXPECT_EQ(a.rope_high_freq, b.rope_high_freq);
  EXPECT_EQ(a.rope_original_context, b.rope_original_context);
}

TEST(LlamaHuggingFace, AConfigurationGivesBackTheModel) {
  ModelConfig llama = base(), stretched = base(), linear = base(), mistral = base(), qwen2 = base(), qwen3 = base();
  llama.tie_weights = false, llama.norm_eps = 1e-6, llama.rope_theta = 500000;
  stretched.rope_scaling = "llama3", stretched.rope_factor = 8, stretched.rope_low_freq = 2;
  stretched.rope_high_freq = 5, stretched.rope_original_context = 9;
  linear.rope_scaling = "linear", linear.rope_factor = 3;
  mistral.window = 5;
  qwen2.qkv_bias = true;
  qwen3.qk_norm = true, qwen3.head_width = 16, qwen3.window = 4;
  for (const auto& [model, type] : {std::pair(llama, "llama"),
                                    {stretched, "llama"},
                                    {linear, "llama"},
                                    {mistral, "mistral"},
                                    {qwen2, "qwen2"},
                                    {qwen3, "qwen3"}}) {
    SCOPED_TRACE(type);
    json config = parse_json(format_json(llama_hugging_face.write_config(model)));  // as a file has it
    EXPECT_EQ(config["model_type"], type);
    EXPECT_EQ(family_of_config(config, "x").name, "llama");
    expect_same(llama_hugging_face.read_config(config, "config.json"), model);
  }
}

TEST(LlamaHuggingFace, ReadsRotaryPositionsOfBothVersions) {
  std::string four = R"("rope_theta": 7.5, "rope_scaling": {"type": "linear", "factor": 2.5})";
  std::string five = R"("rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 7.5})";
  for (const std::string& text : {four, five}) {
    ModelConfig model = read("llama", text);
    EXPECT_EQ(model.rope_theta, 7.5);
    EXPECT_EQ(model.rope_scaling, "linear");
    EXPECT_EQ(model.rope_factor, 2.5);
  }
  EXPECT_EQ(read("llama", R"("rope_parameters": {"rope_type": "default", "rope_theta": 9})").rope_scaling, "none");
}

TEST(LlamaHuggingFace, WhatIsAbsentIsTransformersDefault) {
  ModelConfig llama = read("llama");
  EXPECT_EQ(llama.num_kv_heads(), 6);
  EXPECT_EQ(llama.width_of_head(), 8);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  EXPECT_EQ(llama.rope_theta, 10000);
  EXPECT_FALSE(llama.tie_weights);
  EXPECT_EQ(read("qwen3").width_of_head(), 128);
  EXPECT_EQ(read("mistral").window, 4096);
}

// Of Qwen's layers those from max_window_layers on have a window, if any has one.
TEST(LlamaHuggingFace, WindowsAreThoseOfAllLayersOrOfNone) {
  EXPECT_EQ(read("mistral", R"("sliding_window": null)").window, 0);
  EXPECT_EQ(read("mistral", R"("sliding_window": 9)").window, 9);
  EXPECT_EQ(read("llama", R"("sliding_window": 9)").window, 0);
  EXPECT_EQ(read("qwen2", R"("sliding_window": 9, "use_sliding_window": false)").window, 0);
  std::string used = R"("sliding_window": 9, "use_sliding_window": true, )";
  EXPECT_EQ(read("qwen2", used + R"("max_window_layers": 0)").window, 9);
  EXPECT_EQ(read("qwen2", used + R"("max_window_layers": 3)").window, 0);
  std::string all = R"("layer_types": ["sliding_attention", "sliding_attention", "sliding_attention"])";
  EXPECT_EQ(read("qwen3", used + all).window, 9);
  expect_user_error([&] { read("qwen2", used + R"("max_window_layers": 1)"); },
                    {"config.json: expected max_window_layers to be 0 or num_hidden_layers = 3, got 1"});
}

TEST(LlamaHuggingFace, RefusesWhatOursDoesNotCompute) {
  for (auto [text, piece] :
       {std::pair(R"("hidden_act": "gelu")", "hidden_act to be silu, got \"gelu\""),
        {R"("attention_bias": true)", "attention_bias to be false"},
        {R"("mlp_bias": true)", "mlp_bias to be false"},
        {R"("num_key_value_heads": 4)", "a divisor of num_attention_heads = 6"},
        {R"("partial_rotary_factor": 0.5)", "partial_rotary_factor to be 1, got 0.5"},
        {R"("rope_scaling": {"rope_type": "yarn", "factor": 2})", "rope_type to be one of default, linear and llama3"},
        {R"("rope_scaling": {"type": "dynamic", "factor": 2})", "rope_type to be one of default, linear and llama3"}})
    expect_user_error([&, text = text] { read("llama", text); }, {"config.json: expected", piece});
}

TEST(LlamaHuggingFace, NamesWhatATensorHolds) {
  ModelConfig tied, untied{.tie_weights = false};
  auto name = [](const char* tensor, const ModelConfig& m) { return llama_hugging_face.parameter_name(tensor, m); };
  EXPECT_EQ(name("model.layers.3.mlp.up_proj.weight", tied), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(name("layers.3.mlp.up_proj.weight", tied), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(name("model.layers.0.self_attn.rotary_emb.inv_freq", tied), "");
  EXPECT_EQ(name("lm_head.weight", tied), "") << "the embedding once more";
  EXPECT_EQ(name("lm_head.weight", untied), "lm_head.weight");
}

}  // namespace
}  // namespace tokamak
