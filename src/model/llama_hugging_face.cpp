// Llama and its relatives as Transformers' LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM.
#include "base/error.h"
#include "config/model_config.h"
#include "model/hugging_face.h"
#include "model/llama.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tokamak {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kOtherFunction = "a model of ours computes something else";
constexpr std::string_view kTypes[] = {"llama", "mistral", "qwen2", "qwen3"};

// The one whose modeling has what the model has.
std::string_view type_of(const ModelConfig& model) {
  return model.qk_norm ? "qwen3" : model.qkv_bias ? "qwen2" : model.window > 0 ? "mistral" : "llama";
}
std::string architecture_of(std::string_view type) {
  return std::string(type == "llama"     ? "Llama"
                     : type == "mistral" ? "Mistral"
                     : type == "qwen2"   ? "Qwen2"
                                         : "Qwen3") +
         "ForCausalLM";
}

ordered_json write_scaling(const ModelConfig& model) {
  if (model.rope_scaling == "none") return nullptr;
  ordered_json scaling = {{"rope_type", model.rope_scaling}, {"factor", model.rope_factor}};
  if (model.rope_scaling == "llama3") {
    scaling["low_freq_factor"] = model.rope_low_freq;
    scaling["high_freq_factor"] = model.rope_high_freq;
    scaling["original_max_position_embeddings"] = model.rope_original_context;
  }
  return scaling;
}

ordered_json write_config(const ModelConfig& model) {
  std::string_view type = type_of(model);
  ordered_json config = {{"model_type", type},
                         {"architectures", {architecture_of(type)}},
                         {"vocab_size", model.vocab},
                         {"max_position_embeddings", model.context},
                         {"hidden_size", model.width},
                         {"intermediate_size", model.mlp_width()},
                         {"num_hidden_layers", model.layers},
                         {"num_attention_heads", model.heads},
                         {"num_key_value_heads", model.num_kv_heads()},
                         {"head_dim", model.width_of_head()},
                         {"hidden_act", "silu"},
                         {"rms_norm_eps", model.norm_eps},
                         {"rope_theta", model.rope_theta},
                         {"rope_scaling", write_scaling(model)},
                         {"attention_dropout", model.dropout},
                         {"tie_word_embeddings", model.tie_weights}};
  if (type == "llama") config["attention_bias"] = config["mlp_bias"] = false;
  if (type == "qwen3") config["attention_bias"] = false;
  if (type == "mistral") config["sliding_window"] = model.window;
  if (type == "qwen2" || type == "qwen3") {
    config["use_sliding_window"] = model.window > 0;
    config["sliding_window"] = model.window > 0 ? ordered_json(model.window) : ordered_json(nullptr);
    config["max_window_layers"] = model.window > 0 ? 0 : model.layers;  // those before it see all
  }
  return config;
}

// Of Transformers 4 rope_theta and rope_scaling, of 5 all in rope_parameters.
void read_rotary(const json& fields, const HuggingFaceConfig& config, const std::string& where, ModelConfig& model) {
  static const json kNothing;
  auto object = [&](const char* key) -> const json& {
    return fields.contains(key) && fields[key].is_object() ? fields[key] : kNothing;
  };
  const json& parameters = object("rope_parameters");
  HuggingFaceConfig rope(parameters.is_null() ? object("rope_scaling") : parameters, where);
  model.rope_theta = rope.number("rope_theta", config.number("rope_theta", 10000));
  if (rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1)) != 1)
    config.refuse("partial_rotary_factor", "1", kOtherFunction);
  std::string type = rope.text("rope_type", rope.text("type", "default"));
  model.rope_scaling = type == "default" ? "none" : type;
  if (std::ranges::find(kRopeScalings, model.rope_scaling) == std::end(kRopeScalings))
    rope.refuse("rope_type", "one of default, linear and llama3", kOtherFunction);
  if (type != "default") model.rope_factor = rope.number("factor", 1);
  if (type != "llama3") return;
  model.rope_low_freq = rope.number("low_freq_factor", 1);
  model.rope_high_freq = rope.number("high_freq_factor", 4);
  model.rope_original_context = rope.size("original_max_position_embeddings", model.context);
}

// Of the layers of Qwen2 and Qwen3 some may see all and others a window; here all are alike.
bool all_layers_slide(const json& fields, const HuggingFaceConfig& config, const ModelConfig& model) {
  if (!config.flag("use_sliding_window", false)) return false;
  int64_t sliding = 0;
  if (fields.contains("layer_types") && fields["layer_types"].is_array())
    sliding = std::ranges::count(fields["layer_types"], json("sliding_attention"));
  else if (fields.contains("max_window_layers") && fields["max_window_layers"] == 0)
    sliding = model.layers;
  else
    sliding = std::max<int64_t>(model.layers - config.size("max_window_layers", 28), 0);
  if (sliding != 0 && sliding != model.layers)
    config.refuse("max_window_layers", fmt::format("0 or num_hidden_layers = {}", model.layers), kOtherFunction);
  return sliding > 0;
}

int64_t read_window(const json& fields, const HuggingFaceConfig& config, const std::string& type,
                    const ModelConfig& model) {
  bool is_given = fields.contains("sliding_window") && !fields["sliding_window"].is_null();
  if (type == "mistral" && !fields.contains("sliding_window")) return 4096;
  bool slides = type == "mistral" || (type != "llama" && all_layers_slide(fields, config, model));
  return slides && is_given ? config.size("sliding_window") : 0;
}

ModelConfig read_config(const json& fields, const std::string& where) {
  HuggingFaceConfig config(fields, where);
  std::string type = config.text("model_type", "llama");
  ModelConfig model;
  model.family = "llama";
  model.bias = true;  // llama has no such option; see model.qkv_bias
  model.layers = config.size("num_hidden_layers");
  model.heads = config.size("num_attention_heads");
  model.width = config.size("hidden_size");
  model.context = config.size("max_position_embeddings", type == "llama" ? 2048 : 32768);
  model.vocab = config.size("vocab_size");
  model.hidden = config.size("intermediate_size");
  model.kv_heads = config.size("num_key_value_heads", model.heads);
  model.head_width = config.size("head_dim", type == "qwen3" ? 128 : std::max<int64_t>(model.width / model.heads, 1));
  model.norm_eps = config.number("rms_norm_eps", 1e-6);
  model.tie_weights = config.flag("tie_word_embeddings", false);
  model.qkv_bias = type == "qwen2";
  model.qk_norm = type == "qwen3";
  read_rotary(fields, config, where, model);
  model.window = read_window(fields, config, type, model);
  if (config.text("hidden_act", "silu") != "silu") config.refuse("hidden_act", "silu", kOtherFunction);
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.flag(key, false)) config.refuse(key, "false", kOtherFunction);
  if (model.heads % model.kv_heads != 0)
    config.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads = {}", model.heads), "");
  return model;
}

// With or without the name of the model inside of it. Older files have the frequencies of the rotary positions.
std::string parameter_name(std::string_view tensor, const ModelConfig& model) {
  constexpr std::string_view kInner = "model.";
  bool is_head = tensor == "lm_head.weight";
  if (tensor.ends_with(".rotary_emb.inv_freq") || (is_head && model.tie_weights)) return "";
  return is_head || tensor.starts_with(kInner) ? std::string(tensor) : std::string(kInner) + std::string(tensor);
}

}  // namespace

constinit const HuggingFaceForm llama_hugging_face{kTypes, write_config, read_config, parameter_name};

}  // namespace tokamak
