#include "base/error.h"
#include "config/model_config.h"
#include "model/llama.h"
#include "model/parameter_list.h"

#include <fmt/core.h>

namespace tokamak {

std::vector<ParameterInfo> llama_parameters(const ModelConfig& model) {
  require_even_heads(model);
  if (model.qk_norm && model.qkv_bias)
    user_error(
        "[model.qkv_bias] expected false with model.qk_norm, which no model of Transformers has together; leave "
        "one of them out");
  int64_t C = model.width, D = model.width_of_head(), queries = model.heads * D, keys = model.num_kv_heads() * D;
  int64_t group = queries / keys * D;  // of queries with the same keys
  double residual_std = residual_init_std(model);
  ParameterList list;
  auto norm = [&](const std::string& name, int64_t width) { list.vector(name + ".weight", width, 1); };
  auto biased = [&](const std::string& name, int64_t out, int64_t unit) {
    list.outputs_apart(name, C, out, unit);
    if (model.qkv_bias) list.vector(name + ".bias", out, 0, Role::kColumnBias, 1, unit);
  };
  list.matrix("model.embed_tokens.weight", Role::kEmbedding, model.vocab, C, kInitStd);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string l = fmt::format("model.layers.{}.", layer);
    norm(l + "input_layernorm", C);
    biased(l + "self_attn.q_proj", queries, group);
    biased(l + "self_attn.k_proj", keys, D);
    biased(l + "self_attn.v_proj", keys, D);
    if (model.qk_norm) norm(l + "self_attn.q_norm", D), norm(l + "self_attn.k_norm", D);
    list.adds_parts(l + "self_attn.o_proj", queries, C, residual_std, group);
    norm(l + "post_attention_layernorm", C);
    list.outputs_apart(l + "mlp.gate_proj", C, model.mlp_width());
    list.outputs_apart(l + "mlp.up_proj", C, model.mlp_width());
    list.adds_parts(l + "mlp.down_proj", model.mlp_width(), C, residual_std);
  }
  norm("model.norm", C);
  if (!model.tie_weights) list.matrix("lm_head.weight", Role::kClassifier, model.vocab, C, kInitStd);
  return list.take();
}

FlopsPerToken llama_flops_per_token(const ModelConfig& model) {
  std::vector<int64_t> windows(size_t(model.layers), model.window);
  return flops_of(llama_parameters(model), model, model.heads * model.width_of_head(), windows);
}

}  // namespace tokamak
