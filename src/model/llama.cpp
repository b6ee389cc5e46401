#include "model/llama.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "model/mean_loss.h"
#include "model/transformer.h"
#include "ops/embedding.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/rms_norm.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

class LlamaBuilder : public TransformerBuilder {
 public:
  LlamaBuilder(GraphBuilder& g, const ModelConfig& model, ValueId rng)
      : TransformerBuilder(g, model, llama_parameters(model), model.width_of_head(), rng) {}

  // tokens (B, t), positions i32 (B, t) or (1, t) -> logits (B*t, V)
  ValueId logits(ValueId tokens, ValueId positions, const AttentionForm& attend, bool show_blocks = false) {
    ValueId x = drop(embedding(g_, parameter("model.embed_tokens.weight"), tokens));  // (B, t, C)
    x = blocks(
        x, [&](ValueId of, int64_t layer) { return block(of, layer, positions, attend); }, show_blocks);
    return last_layer(norm(x, "model.norm"), model_.tie_weights ? "model.embed_tokens.weight" : "lm_head.weight");
  }

 private:
  ValueId block(ValueId x, int64_t layer, ValueId positions, const AttentionForm& attend) {
    std::string l = fmt::format("model.layers.{}.", layer);
    ValueId a = attend(layer, qkv(norm(x, l + "input_layernorm"), l + "self_attn.", positions));
    x = add(g_, x, drop(linear(a, l + "self_attn.o_proj")));
    ValueId y = norm(x, l + "post_attention_layernorm");
    ValueId m = mul(g_, silu(g_, linear(y, l + "mlp.gate_proj")), linear(y, l + "mlp.up_proj"));
    return add(g_, x, drop(linear(m, l + "mlp.down_proj")));
  }

  ValueId qkv(ValueId x, const std::string& at, ValueId positions) {
    ValueId q = biased(x, at + "q_proj"), k = biased(x, at + "k_proj"), v = biased(x, at + "v_proj");
    if (model_.qk_norm) q = norm_of_heads(q, at + "q_norm"), k = norm_of_heads(k, at + "k_norm");
    return rotary_qkv(g_, q, k, v, positions, rotary_options());
  }

  ValueId norm(ValueId x, const std::string& name) {
    return rms_norm(g_, x, parameter(name + ".weight"), model_.norm_eps);
  }
  // Of each head by itself: (B, t, heads x D).
  ValueId norm_of_heads(ValueId x, const std::string& name) {
    const Shape shape = g_.shape(x);
    return reshape(g_, norm(reshape(g_, x, {shape[0], shape[1], -1, model_.width_of_head()}), name), shape);
  }

  ValueId biased(ValueId x, const std::string& name) {
    ValueId y = linear(x, name);
    return model_.qkv_bias ? add(g_, y, parameter(name + ".bias")) : y;
  }
};

}  // namespace

ValueId llama_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng, ValueId documents,
                     bool show_blocks) {
  LlamaBuilder builder(g, model, rng);
  int64_t B = g.shape(tokens)[0], T = g.shape(tokens)[1];
  require_context("llama", model, T);
  ValueId positions = cast(g, iota(g, {1, T}, 1), DType::kI32), seen = first_seen(g, model.window, B, T, documents);
  auto attend = [&](int64_t, ValueId qkv) { return builder.attend(qkv, seen, model.window); };
  return builder.logits(tokens, positions, attend, show_blocks);
}

ValueId llama_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in) {
  return mean_loss(g, model, llama_logits(g, model, in.tokens, in.rng, in.documents.starts, in.show_blocks), in);
}

ValueId llama_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in) {
  LlamaBuilder builder(g, model, kNoValue);
  return builder.logits(in.tokens, in.positions, [&](int64_t layer, ValueId qkv) {
    return builder.attend_cached(layer, qkv, in, model.window);
  });
}

constexpr std::string_view kOptions[] = {
    "kv_heads",
    "head_width",
    "hidden",
    "window",
    "qkv_bias",
    "qk_norm",
    "norm_eps",
    "rope_theta",
    "rope_scaling",
    "rope_factor",
    "rope_low_freq",
    "rope_high_freq",
    "rope_original_context",
};

constinit const ModelFamily llama = {.name = "llama",
                                     .parameters = llama_parameters,
                                     .loss = llama_loss,
                                     .decode = llama_decode,
                                     .flops_per_token = llama_flops_per_token,
                                     .options = kOptions,
                                     .hugging_face = &llama_hugging_face};

}  // namespace tokamak
