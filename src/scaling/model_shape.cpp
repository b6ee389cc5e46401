#include "scaling/model_shape.h"

#include "model/model.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

double usual_layers(int64_t width) { return double(width) / std::clamp(double(width) / 24, 64.0, 128.0); }

ModelConfig sized(const ModelConfig& base, int64_t width, int64_t layers) {
  ModelConfig model = base;
  ModelConfig usual;
  model.preset.clear();
  model.width = width, model.layers = layers;
  model.heads = width / (width >= 2048 && width % 128 == 0 ? 128 : 64);
  model.kv_heads = usual.kv_heads, model.head_width = usual.head_width, model.hidden = usual.hidden;
  return model;
}

}  // namespace

ParameterCounts count_both(const ModelConfig& model) {
  ParameterCounts counts;
  for (const ParameterInfo& parameter : model_parameters(model)) {
    auto count = double(num_elements(parameter.shape));
    bool is_table = parameter.role == Role::kEmbedding || parameter.role == Role::kPosition ||
                    parameter.role == Role::kClassifier || parameter.role == Role::kValueTable;
    counts.all += count;
    if (!is_table) counts.of_blocks += count;
  }
  return counts;
}

ModelConfig shape_near(const ModelConfig& base, double parameters) {
  constexpr int64_t kMostWidth = 1 << 16;
  constexpr double kUnusual = 0.2;  // what a depth of other proportions costs, beside missing the number
  ModelConfig best = sized(base, 64, 1);
  double least = INFINITY;
  for (int64_t width = 64; width <= kMostWidth; width += width >= 1024 ? 128 : 64) {
    double usual = usual_layers(width);
    auto one = double(count_parameters(sized(base, width, 1))), two = double(count_parameters(sized(base, width, 2)));
    auto fewest = std::max(int64_t(0.8 * usual + 0.5), int64_t(1)),
         most = std::max(int64_t(1.25 * usual + 0.5), fewest);
    for (int64_t layers = fewest; layers <= most; ++layers) {
      double off = std::log((one + double(layers - 1) * (two - one)) / parameters);
      double cost = std::abs(off) + kUnusual * std::abs(std::log(double(layers) / usual));
      if (cost < least) least = cost, best = sized(base, width, layers);
      if (off > 1 && layers == fewest) return best;  // wider ones have more still
    }
  }
  return best;
}

}  // namespace tokamak
