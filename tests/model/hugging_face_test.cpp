#include "model/hugging_face.h"

#include "base/json.h"
#include "config/model_config.h"
#include "model/model.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::json;

const HuggingFaceForm& gpt2_form() { return *family_of(ModelConfig()).hugging_face; }
ModelConfig read(const std::string& text) { return gpt2_form().read_config(parse_json(text), "config.json"); }

TEST(HuggingFace, AConfigurationGivesBackTheModel) {
  ModelConfig model{.layers = 3, .heads = 5, .width = 40, .context = 17, .vocab = 301, .tie_weights = false};
  ModelConfig back = read(format_json(gpt2_form().write_config(model)));
  EXPECT_EQ(back.layers, 3);
  EXPECT_EQ(back.heads, 5);
  EXPECT_EQ(back.width, 40);
  EXPECT_EQ(back.context, 17);
  EXPECT_EQ(back.vocab, 301);
  EXPECT_TRUE(back.bias);
  EXPECT_FALSE(back.tie_weights);
}

// What Transformers itself leaves out is GPT-2 small.
TEST(HuggingFace, WhatIsAbsentIsTransformersDefault) {
  ModelConfig model = read(R"({"model_type": "gpt2", "n_inner": null})");
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.width, 768);
  EXPECT_EQ(model.context, 1024);
  EXPECT_EQ(model.vocab, 50257);
  EXPECT_TRUE(model.bias && model.tie_weights);
}

TEST(HuggingFace, RefusesWhatOursDoesNotCompute) {
  for (auto [text, piece] :
       {std::pair(R"({"activation_function": "relu"})", "activation_function to be gelu_new, got \"relu\""),
        {R"({"n_embd": 16, "n_head": 4, "n_inner": 32})", "n_inner to be 4 x n_embd = 64, got 32"},
        {R"({"n_embd": 16, "n_head": 4, "n_inner": 128})", "n_inner to be 4 x n_embd = 64, got 128"},
        {R"({"layer_norm_epsilon": 1e-6})", "layer_norm_epsilon"},
        {R"({"scale_attn_weights": false})", "scale_attn_weights to be true"},
        {R"({"scale_attn_by_inverse_layer_idx": true})", "to be false, got true"},
        {R"({"n_embd": 30, "n_head": 4})", "a divisor of n_embd = 30"}})
    expect_user_error([&] { read(text); }, {"config.json: expected", piece});
}

TEST(HuggingFace, RefusesNumbersThatAreNoSizes) {
  for (const char* value : {"-1", "0", "1.5", "\"12\"", "1e9", "18446744073709551616", "[]", "9223372036854775807"})
    expect_user_error([&] { read(std::string(R"({"n_layer": )") + value + "}"); },
                      {"config.json: expected n_layer to be a size of at least 1"});
}

TEST(HuggingFace, FindsTheFamilyOfAConfiguration) {
  EXPECT_EQ(family_of_config(parse_json(R"({"model_type": "gpt2"})"), "x").name, "gpt2");
  expect_user_error([] { family_of_config(parse_json(R"({"model_type": "mamba"})"), "config.json"); },
                    {"config.json: expected model_type to be one of gpt2, llama, mistral, qwen2, qwen3, got 'mamba'"});
}

TEST(HuggingFace, NamesWhatATensorHolds) {
  ModelConfig tied, untied{.tie_weights = false};
  auto name = [](const char* tensor, const ModelConfig& model) { return gpt2_form().parameter_name(tensor, model); };
  EXPECT_EQ(name("transformer.h.3.attn.c_attn.bias", tied), "h.3.attn.c_attn.bias");
  EXPECT_EQ(name("h.3.ln_1.weight", tied), "h.3.ln_1.weight");
  EXPECT_EQ(name("transformer.h.3.attn.bias", tied), "") << "a mask";
  EXPECT_EQ(name("h.3.attn.masked_bias", tied), "");
  EXPECT_EQ(name("lm_head.weight", tied), "") << "the embedding once more";
  EXPECT_EQ(name("lm_head.weight", untied), "lm_head.weight");
}

}  // namespace
}  // namespace tokamak
