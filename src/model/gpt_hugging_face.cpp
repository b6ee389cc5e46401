// GPT-2 as Transformers' GPT2LMHeadModel has it.
#include "config/model_config.h"
#include "model/gpt.h"
#include "model/hugging_face.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

constexpr std::string_view kTypes[] = {"gpt2"};
constexpr const char* kOtherFunction = "a model of ours computes something else";

nlohmann::ordered_json write_config(const ModelConfig& model) {
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"vocab_size", model.vocab},
          {"n_positions", model.context},
          {"n_embd", model.width},
          {"n_layer", model.layers},
          {"n_head", model.heads},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", kLayerNormEps},
          {"resid_pdrop", model.dropout},
          {"embd_pdrop", model.dropout},
          {"attn_pdrop", model.dropout},
          {"tie_word_embeddings", model.tie_weights},
          {"bias", model.bias}};  // ours
}

// The same function in all of these: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
bool is_tanh_gelu(const std::string& name) {
  return name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
}

void require_our_function(const HuggingFaceConfig& config, int64_t width) {
  if (!is_tanh_gelu(config.text("activation_function", "gelu_new")))
    config.refuse("activation_function", "gelu_new", kOtherFunction);
  if (config.size("n_inner", 4 * width) != 4 * width)
    config.refuse("n_inner", fmt::format("4 x n_embd = {}", 4 * width), kOtherFunction);
  if (config.number("layer_norm_epsilon", kLayerNormEps) != kLayerNormEps)
    config.refuse("layer_norm_epsilon", fmt::format("{}", kLayerNormEps), kOtherFunction);
  if (!config.flag("scale_attn_weights", true)) config.refuse("scale_attn_weights", "true", kOtherFunction);
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (config.flag(key, false)) config.refuse(key, "false", kOtherFunction);
}

ModelConfig read_config(const nlohmann::json& json, const std::string& where) {
  HuggingFaceConfig config(json, where);
  ModelConfig model;
  model.family = "gpt2";
  model.layers = config.size("n_layer", 12);
  model.heads = config.size("n_head", 12);
  model.width = config.size("n_embd", 768);
  model.context = config.size("n_positions", 1024);
  model.vocab = config.size("vocab_size", 50257);
  model.bias = config.flag("bias", true);
  model.tie_weights = config.flag("tie_word_embeddings", true);
  if (model.width % model.heads != 0) config.refuse("n_head", fmt::format("a divisor of n_embd = {}", model.width), "");
  require_our_function(config, model.width);
  return model;
}

// With or without the name of the model inside of GPT2LMHeadModel. Masks are not stored by newer versions.
std::string parameter_name(std::string_view tensor, const ModelConfig& model) {
  constexpr std::string_view kInner = "transformer.";
  if (tensor.starts_with(kInner)) tensor.remove_prefix(kInner.size());
  bool is_mask = tensor.ends_with(".attn.bias") || tensor.ends_with(".attn.masked_bias");
  bool is_tied_head = model.tie_weights && tensor == "lm_head.weight";
  return is_mask || is_tied_head ? "" : std::string(tensor);
}

ModelConfig with_biases(const ModelConfig& model) {
  ModelConfig biased = model;
  biased.bias = true;
  return biased;
}

}  // namespace

constinit const HuggingFaceForm gpt2_hugging_face{kTypes, write_config, read_config, parameter_name, with_biases};

}  // namespace tokamak
