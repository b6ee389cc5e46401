#include "base/parallel.h"
#include "base/random.h"
#include "config/model_config.h"
#include "model/gpt.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tokamak {
namespace {

constexpr double kInitStd = 0.02;

class Lister {
 public:
  explicit Lister(bool bias) : bias_(bias) {}

  void matrix(std::string name, int64_t rows, int64_t cols, double std) {
    list_.push_back({std::move(name), {rows, cols}, std, 0, true});
  }
  void linear(const std::string& name, int64_t in, int64_t out, double std) {
    matrix(name + ".weight", in, out, std);
    if (bias_) list_.push_back({name + ".bias", {out}});
  }
  void norm(const std::string& name, int64_t width) {
    list_.push_back({name + ".weight", {width}, 0, 1});
    if (bias_) list_.push_back({name + ".bias", {width}});
  }
  std::vector<ParameterInfo> take() { return std::move(list_); }

 private:
  bool bias_;
  std::vector<ParameterInfo> list_;
};

// Box-Muller on two words a pair; the stream 2^32 + index keeps clear of dropout's.
void draw_pair(const ParameterInfo& info, int64_t index, int64_t seed, int64_t pair, std::span<float> values) {
  auto words = philox4x32(uint64_t(seed), uint64_t(pair), (uint64_t(1) << 32) + uint64_t(index));
  double radius = std::sqrt(-2 * std::log(1.0 - double(uniform_float(words[0]))));
  double angle = 2 * std::numbers::pi * double(uniform_float(words[1]));
  auto i = size_t(2 * pair);
  values[i] = float(info.init_std * radius * std::cos(angle));
  if (i + 1 < values.size()) values[i + 1] = float(info.init_std * radius * std::sin(angle));
}

}  // namespace

std::vector<ParameterInfo> gpt_parameters(const ModelConfig& model) {
  int64_t C = model.width;
  double residual_std = kInitStd / std::sqrt(2.0 * double(model.layers));
  Lister list(model.bias);
  list.matrix("wte.weight", model.vocab, C, kInitStd);
  list.matrix("wpe.weight", model.context, C, kInitStd);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string h = fmt::format("h.{}.", layer);
    list.norm(h + "ln_1", C);
    list.linear(h + "attn.c_attn", C, 3 * C, kInitStd);
    list.linear(h + "attn.c_proj", C, C, residual_std);
    list.norm(h + "ln_2", C);
    list.linear(h + "mlp.c_fc", C, 4 * C, kInitStd);
    list.linear(h + "mlp.c_proj", 4 * C, C, residual_std);
  }
  list.norm("ln_f", C);
  if (!model.tie_weights) list.matrix("lm_head.weight", model.vocab, C, kInitStd);
  return list.take();
}

int64_t count_parameters(const ModelConfig& model) {
  int64_t count = 0;
  for (const ParameterInfo& info : gpt_parameters(model)) count += num_elements(info.shape);
  return count;
}

void init_parameter(const ParameterInfo& info, int64_t index, int64_t seed, std::span<float> values) {
  if (info.init_std == 0) {
    std::fill(values.begin(), values.end(), float(info.init_value));
    return;
  }
  auto pairs = int64_t(values.size() + 1) / 2;
  parallel_for(pairs, 1 << 14, [&](int64_t begin, int64_t end, int) {
    for (int64_t pair = begin; pair < end; ++pair) draw_pair(info, index, seed, pair, values);
  });
}

std::vector<float> init_parameter(const ParameterInfo& info, int64_t index, int64_t seed) {
  std::vector<float> values(size_t(num_elements(info.shape)));
  init_parameter(info, index, seed, values);
  return values;
}

}  // namespace tokamak
