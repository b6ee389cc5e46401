#include "config/model_config.h"
#include "model/gpt.h"

#include <fmt/core.h>

#include <cmath>

namespace tokamak {
namespace {

constexpr double kInitStd = 0.02;

class Lister {
 public:
  explicit Lister(bool bias) : bias_(bias) {}

  void matrix(std::string name, Role role, int64_t rows, int64_t cols, double std, int64_t blocks = 1) {
    list_.push_back({std::move(name), {rows, cols}, std, 0, role, blocks});
  }
  void linear(const std::string& name, Role role, int64_t in, int64_t out, double std, int64_t blocks = 1) {
    matrix(name + ".weight", role, in, out, std, blocks);
    Role bias = role == Role::kColumn ? Role::kColumnBias : Role::kVector;
    if (bias_) list_.push_back({name + ".bias", {out}, 0, 0, bias, blocks});
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

}  // namespace

std::vector<ParameterInfo> gpt_parameters(const ModelConfig& model) {
  int64_t C = model.width;
  double residual_std = kInitStd / std::sqrt(2.0 * double(model.layers));
  Lister list(model.bias);
  list.matrix("wte.weight", Role::kEmbedding, model.vocab, C, kInitStd);
  list.matrix("wpe.weight", Role::kPosition, model.context, C, kInitStd);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string h = fmt::format("h.{}.", layer);
    list.norm(h + "ln_1", C);
    list.linear(h + "attn.c_attn", Role::kColumn, C, 3 * C, kInitStd, 3);
    list.linear(h + "attn.c_proj", Role::kRow, C, C, residual_std);
    list.norm(h + "ln_2", C);
    list.linear(h + "mlp.c_fc", Role::kColumn, C, 4 * C, kInitStd);
    list.linear(h + "mlp.c_proj", Role::kRow, 4 * C, C, residual_std);
  }
  list.norm("ln_f", C);
  if (!model.tie_weights) list.matrix("lm_head.weight", Role::kClassifier, model.vocab, C, kInitStd);
  return list.take();
}

FlopsPerToken gpt_flops_per_token(const ModelConfig& model) {
  int64_t counted = -model.context * model.width;
  if (!model.tie_weights) counted -= model.vocab * model.width;
  for (const ParameterInfo& info : gpt_parameters(model)) counted += num_elements(info.shape);
  double attention = double(model.layers) * double(model.width) * double(model.context);
  return {counted, 6.0 * double(counted) + 12 * attention, 6.0 * double(counted) + 6 * attention};
}

}  // namespace tokamak
