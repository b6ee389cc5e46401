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

constexpr std::array<Preset, 5> kPresets = {{
    {"small", 4, 6, 192, 128, 0},
    {"gpt2-124m", 12, 12, 768},
    {"gpt2-355m", 24, 16, 1024},
    {"gpt2-774m", 36, 20, 1280},
    {"gpt2-1558m", 48, 25, 1600},
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
