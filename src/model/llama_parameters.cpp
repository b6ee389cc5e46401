#include "base/error.h"
#include "config/model_config.h"
#include "model/llama.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kInitStd = 0.02;

class Lister {
 public:
  void matrix(std::string name, Role role, int64_t rows, int64_t cols, double std, bool transposed = false) {
    list_.push_back({std::move(name), {rows, cols}, std, 0, role, 1, transposed});
  }
  void outputs_apart(const std::string& name, int64_t in, int64_t out, bool bias) {
    matrix(name + ".weight", Role::kColumn, out, in, kInitStd, true);
    if (bias) list_.push_back({name + ".bias", {out}, 0, 0, Role::kColumnBias});
  }
  void adds_parts(const std::string& name, int64_t in, int64_t out, double std) {
    matrix(name + ".weight", Role::kRow, out, in, std, true);
  }
  void norm(const std::string& name, int64_t width) { list_.push_back({name + ".weight", {width}, 0, 1}); }
  std::vector<ParameterInfo> take() { return std::move(list_); }

 private:
  std::vector<ParameterInfo> list_;
};

}  // namespace

std::vector<ParameterInfo> llama_parameters(const ModelConfig& model) {
  if (model.width_of_head() % 2 != 0)
    user_error(
        "[model.head_width] expected an even width of a head for rotary positions, got {}; change "
        "model.head_width, or model.width / model.heads",
        model.width_of_head());
  if (model.qk_norm && model.qkv_bias)
    user_error(
        "[model.qkv_bias] expected false with model.qk_norm, which no model of Transformers has together; leave "
        "one of them out");
  int64_t C = model.width, D = model.width_of_head(), queries = model.heads * D, keys = model.num_kv_heads() * D;
  double residual_std = kInitStd / std::sqrt(2.0 * double(model.layers));
  Lister list;
  list.matrix("model.embed_tokens.weight", Role::kEmbedding, model.vocab, C, kInitStd);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string l = fmt::format("model.layers.{}.", layer);
    list.norm(l + "input_layernorm", C);
    list.outputs_apart(l + "self_attn.q_proj", C, queries, model.qkv_bias);
    list.outputs_apart(l + "self_attn.k_proj", C, keys, model.qkv_bias);
    list.outputs_apart(l + "self_attn.v_proj", C, keys, model.qkv_bias);
    if (model.qk_norm) list.norm(l + "self_attn.q_norm", D), list.norm(l + "self_attn.k_norm", D);
    list.adds_parts(l + "self_attn.o_proj", queries, C, residual_std);
    list.norm(l + "post_attention_layernorm", C);
    list.outputs_apart(l + "mlp.gate_proj", C, model.mlp_width(), false);
    list.outputs_apart(l + "mlp.up_proj", C, model.mlp_width(), false);
    list.adds_parts(l + "mlp.down_proj", model.mlp_width(), C, residual_std);
  }
  list.norm("model.norm", C);
  if (!model.tie_weights) list.matrix("lm_head.weight", Role::kClassifier, model.vocab, C, kInitStd);
  return list.take();
}

FlopsPerToken llama_flops_per_token(const ModelConfig& model) {
  int64_t counted = model.tie_weights ? 0 : -model.vocab * model.width;
  for (const ParameterInfo& info : llama_parameters(model)) counted += num_elements(info.shape);
  double of_a_pair = 12 * double(model.layers) * double(model.heads * model.width_of_head());
  auto context = double(model.context);
  double window = model.window > 0 ? std::min(double(model.window), context) : context;
  double seen = window - window * window / (2 * context);  // on average; half of the context without a window
  return {counted, 6.0 * double(counted) + of_a_pair * context, 6.0 * double(counted) + of_a_pair * seen};
}

}  // namespace tokamak
