#include "config/model_config.h"
#include "model/modern.h"
#include "model/parameter_list.h"

#include <fmt/core.h>

namespace tokamak {

bool has_skip(const ModelConfig& model, int64_t layer) { return model.skip_blocks && layer > model.layers - 1 - layer; }

std::vector<ParameterInfo> modern_parameters(const ModelConfig& model) {
  require_even_heads(model);
  int64_t C = model.width, D = model.width_of_head(), queries = model.heads * D, keys = model.num_kv_heads() * D;
  int64_t group = queries / keys * D;  // of queries with the same keys
  double residual_std = model.zero_init ? 0 : residual_init_std(model);
  ParameterList list;
  auto norm = [&](const std::string& name, int64_t width) {
    if (model.norm_weights) list.vector(name + ".weight", width, 1);
  };
  list.matrix("model.embed_tokens.weight", Role::kEmbedding, model.vocab, C, kInitStd);
  if (model.embedding_norm) norm("model.embed_norm", C);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string l = fmt::format("model.layers.{}.", layer);
    if (has_skip(model, layer)) list.vector(l + "skip_scale", 1, 1);
    if (model.x0_mix) list.vector(l + "x_scale", 1, 1), list.vector(l + "x0_scale", 1, 0);
    norm(l + "input_layernorm", C);
    list.outputs_apart(l + "self_attn.q_proj", C, queries, group);
    list.outputs_apart(l + "self_attn.k_proj", C, keys, D);
    list.outputs_apart(l + "self_attn.v_proj", C, keys, D);
    if (model.has_value_embedding(layer)) {
      list.matrix(l + "self_attn.value_embed.weight", Role::kValueTable, model.vocab, keys, kInitStd, 1, D);
      list.vector(l + "self_attn.v_scale", 1, 0.5);
      list.vector(l + "self_attn.value_embed_scale", 1, 0.5);
    }
    if (model.qk_norm) norm(l + "self_attn.q_norm", D), norm(l + "self_attn.k_norm", D);
    list.adds_parts(l + "self_attn.o_proj", queries, C, residual_std, group);
    norm(l + "post_attention_layernorm", C);
    if (model.has_gate()) list.outputs_apart(l + "mlp.gate_proj", C, model.mlp_width());
    list.outputs_apart(l + "mlp.up_proj", C, model.mlp_width());
    list.adds_parts(l + "mlp.down_proj", model.mlp_width(), C, residual_std);
  }
  norm("model.norm", C);
  if (!model.tie_weights)
    list.matrix("lm_head.weight", Role::kClassifier, model.vocab, C, model.zero_init ? 0 : kInitStd);
  return list.take();
}

FlopsPerToken modern_flops_per_token(const ModelConfig& model) {
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < model.layers; ++layer) windows.push_back(model.window_of(layer));
  return flops_of(modern_parameters(model), model, model.heads * model.width_of_head(), windows);
}

}  // namespace tokamak
