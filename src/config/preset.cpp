#include "config/preset.h"

#include "base/error.h"
#include "config/model_config.h"
#include "config/suggest.h"

namespace tokamak {

namespace {

struct Preset {
  const char* name;
  int64_t layers, heads, width;
  int64_t context = 1024;
  int64_t vocab = 50257;
};

// gpt3-*: table 2.1 of arXiv 2005.14165, its 13B with the width of its heads, 40 x 128; attention is GPT-2's.
constexpr Preset kGpt2[] = {
    {"small", 4, 6, 192, 128, 0},      {"gpt2-124m", 12, 12, 768},       {"gpt2-355m", 24, 16, 1024},
    {"gpt2-774m", 36, 20, 1280},       {"gpt2-1558m", 48, 25, 1600},     {"gpt3-2.7b", 32, 32, 2560, 2048},
    {"gpt3-6.7b", 32, 32, 4096, 2048}, {"gpt3-13b", 40, 40, 5120, 2048}, {"gpt3-175b", 96, 96, 12288, 2048},
};

struct LlamaPreset : Preset {
  int64_t kv_heads, hidden;
  double rope_theta = 10000;
  bool tie_weights = false;
  double norm_eps = 1e-5;
  int64_t head_width = 0, window = 0;
  bool qkv_bias = false, qk_norm = false;
};

// As the config.json of each says: meta-llama/Llama-2-*-hf and Meta-Llama-3-*, mistralai/Mistral-7B-v0.1,
// Qwen/Qwen2.5-0.5B and Qwen3-0.6B, HuggingFaceTB/SmolLM-*. llama3-405b: table 3 of arXiv 2407.21783, with the context
// of its first stage.
constexpr LlamaPreset kLlama[] = {
    {{"llama2-7b", 32, 32, 4096, 4096, 32000}, 32, 11008},
    {{"llama2-13b", 40, 40, 5120, 4096, 32000}, 40, 13824},
    {{"llama2-70b", 80, 64, 8192, 4096, 32000}, 8, 28672},
    {{"llama3-8b", 32, 32, 4096, 8192, 128256}, 8, 14336, 500000},
    {{"llama3-70b", 80, 64, 8192, 8192, 128256}, 8, 28672, 500000},
    {{"llama3-405b", 126, 128, 16384, 8192, 128256}, 8, 53248, 500000},
    {{"mistral-7b", 32, 32, 4096, 32768, 32000}, 8, 14336, 10000, false, 1e-5, 0, 4096},
    {{"qwen2.5-0.5b", 24, 14, 896, 32768, 151936}, 2, 4864, 1000000, true, 1e-6, 0, 0, true},
    {{"qwen3-0.6b", 28, 16, 1024, 40960, 151936}, 8, 3072, 1000000, true, 1e-6, 128, 0, false, true},
    {{"smollm-135m", 30, 9, 576, 2048, 49152}, 3, 1536, 10000, true},
    {{"smollm-360m", 32, 15, 960, 2048, 49152}, 5, 2560, 10000, true},
};

// The pieces of docs/modern.md on GPT-2's width and depth, with heads of 128.
struct ModernPreset : Preset {};
constexpr ModernPreset kModern[] = {
    {{"modern-124m", 12, 6, 768}},
    {{"modern-355m", 24, 8, 1024}},
};

// All keys of model.* but those of another folder, so that nothing of an earlier preset is left.
ModelConfig sizes_of(const Preset& preset, const ModelConfig& model) {
  ModelConfig sizes;
  sizes.preset = model.preset, sizes.from = model.from, sizes.dropout = model.dropout;
  sizes.window_warmup_steps = model.window_warmup_steps;
  sizes.layers = preset.layers;
  sizes.heads = preset.heads;
  sizes.width = preset.width;
  sizes.context = preset.context;
  sizes.vocab = preset.vocab;
  return sizes;
}

ModelConfig sizes_of(const LlamaPreset& preset, const ModelConfig& model) {
  ModelConfig sizes = sizes_of(static_cast<const Preset&>(preset), model);
  sizes.family = "llama";
  sizes.tie_weights = preset.tie_weights;
  sizes.kv_heads = preset.kv_heads;
  sizes.hidden = preset.hidden;
  sizes.rope_theta = preset.rope_theta;
  sizes.norm_eps = preset.norm_eps;
  sizes.head_width = preset.head_width;
  sizes.window = preset.window;
  sizes.qkv_bias = preset.qkv_bias;
  sizes.qk_norm = preset.qk_norm;
  return sizes;
}

ModelConfig sizes_of(const ModernPreset& preset, const ModelConfig& model) {
  ModelConfig sizes = sizes_of(static_cast<const Preset&>(preset), model);
  sizes.family = "modern";
  sizes.tie_weights = false;
  sizes.qk_norm = sizes.embedding_norm = sizes.zero_init = true;
  sizes.softcap = 15;
  sizes.value_embeddings = 2;
  return sizes;
}

// Calls visit with each preset.
template <typename Visit>
void for_presets(const Visit& visit) {
  for (const Preset& preset : kGpt2) visit(preset);
  for (const LlamaPreset& preset : kLlama) visit(preset);
  for (const ModernPreset& preset : kModern) visit(preset);
}

}  // namespace

std::vector<std::string> preset_choices() {
  std::vector<std::string> names = {""};
  for_presets([&](const auto& preset) { names.emplace_back(preset.name); });
  return names;
}

void apply_preset(ModelConfig& model) {
  if (model.preset.empty()) return;
  bool found = false;
  for_presets([&](const auto& preset) {
    if (found || model.preset != preset.name) return;
    found = true;
    model = sizes_of(preset, model);
  });
  if (!found)
    user_error("[model.preset] expected a known size, got '{}'{}", model.preset,
               did_you_mean(model.preset, preset_choices()));
}

}  // namespace tokamak
