#include "config/model_config.h"
#include "model/gpt.h"
#include "model/parameter_list.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

class Lister : public ParameterList {
 public:
  explicit Lister(bool bias) : bias_(bias) {}

  void linear(const std::string& name, Role role, int64_t in, int64_t out, double std, int64_t blocks = 1,
              int64_t unit = 1) {
    matrix(name + ".weight", role, in, out, std, blocks, unit);
    bool is_apart = role == Role::kColumn;
    if (bias_)
      vector(name + ".bias", out, 0, is_apart ? Role::kColumnBias : Role::kVector, blocks, is_apart ? unit : 1);
  }
  void norm(const std::string& name, int64_t width) {
    vector(name + ".weight", width, 1);
    if (bias_) vector(name + ".bias", width, 0);
  }

 private:
  bool bias_;
};

}  // namespace

std::vector<ParameterInfo> gpt_parameters(const ModelConfig& model) {
  int64_t C = model.width, D = model.width / model.heads;
  double residual_std = residual_init_std(model);
  Lister list(model.bias);
  list.matrix("wte.weight", Role::kEmbedding, model.vocab, C, kInitStd);
  list.matrix("wpe.weight", Role::kPosition, model.context, C, kInitStd);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string h = fmt::format("h.{}.", layer);
    list.norm(h + "ln_1", C);
    list.linear(h + "attn.c_attn", Role::kColumn, C, 3 * C, kInitStd, 3, D);
    list.linear(h + "attn.c_proj", Role::kRow, C, C, residual_std, 1, D);
    list.norm(h + "ln_2", C);
    list.linear(h + "mlp.c_fc", Role::kColumn, C, 4 * C, kInitStd);
    list.linear(h + "mlp.c_proj", Role::kRow, 4 * C, C, residual_std);
  }
  list.norm("ln_f", C);
  if (!model.tie_weights) list.matrix("lm_head.weight", Role::kClassifier, model.vocab, C, kInitStd);
  return list.take();
}

FlopsPerToken gpt_flops_per_token(const ModelConfig& model) {
  return flops_of(gpt_parameters(model), model, model.width, std::vector<int64_t>(size_t(model.layers)));
}

}  // namespace tokamak
