#include "config/preset.h"

#include <array>

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
constexpr std::array<Preset, 9> kPresets = {{
    {"small", 4, 6, 192, 128, 0},
    {"gpt2-124m", 12, 12, 768},
    {"gpt2-355m", 24, 16, 1024},
    {"gpt2-774m", 36, 20, 1280},
    {"gpt2-1558m", 48, 25, 1600},
    {"gpt3-2.7b", 32, 32, 2560, 2048},
    {"gpt3-6.7b", 32, 32, 4096, 2048},
    {"gpt3-13b", 40, 40, 5120, 2048},
    {"gpt3-175b", 96, 96, 12288, 2048},
}};

}  // namespace

std::vector<std::string> preset_choices() {
  std::vector<std::string> names = {""};
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

void apply_preset(ModelConfig& model) {
  if (model.preset.empty()) return;
  for (const Preset& preset : kPresets) {
    if (model.preset != preset.name) continue;
    model.family = "gpt2";
    model.layers = preset.layers;
    model.heads = preset.heads;
    model.width = preset.width;
    model.context = preset.context;
    model.vocab = preset.vocab;
    model.bias = true;
    model.tie_weights = true;
    return;
  }
  user_error("[model.preset] expected a known size, got '{}'{}", model.preset,
             did_you_mean(model.preset, preset_choices()));
}

}  // namespace tokamak
