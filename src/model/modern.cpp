#include "model/modern.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "model/mean_loss.h"
#include "model/transformer.h"
#include "ops/embedding.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/rms_norm.h"
#include "ops/softcap.h"

#include <fmt/core.h>

#include <map>

namespace tokamak {
namespace {

class ModernBuilder : public TransformerBuilder {
 public:
  ModernBuilder(GraphBuilder& g, const ModelConfig& model, ValueId rng)
      : TransformerBuilder(g, model, modern_parameters(model), model.width_of_head(), rng) {}

  // tokens (B, t), positions i32 (B, t) or (1, t) -> logits (B*t, V), not capped
  ValueId logits(ValueId tokens, ValueId positions, const AttentionForm& attend, bool show_blocks = false) {
    tokens_ = tokens, positions_ = positions;
    ValueId x = embedding(g_, parameter("model.embed_tokens.weight"), tokens);  // (B, t, C)
    if (model_.embedding_norm) x = norm(x, "model.embed_norm");
    x0_ = drop(x);
    x = blocks(
        x0_, [&](ValueId of, int64_t layer) { return block(mixed(of, layer), layer, attend); }, show_blocks);
    return last_layer(norm(x, "model.norm"), model_.tie_weights ? "model.embed_tokens.weight" : "lm_head.weight");
  }

 private:
  ValueId block(ValueId x, int64_t layer, const AttentionForm& attend) {
    std::string l = fmt::format("model.layers.{}.", layer);
    ValueId a = attend(layer, qkv(norm(x, l + "input_layernorm"), layer, l + "self_attn."));
    x = add(g_, x, drop(linear(a, l + "self_attn.o_proj")));
    ValueId m = hidden(norm(x, l + "post_attention_layernorm"), l + "mlp.");
    x = add(g_, x, drop(linear(m, l + "mlp.down_proj")));
    outputs_.push_back(x);
    return x;
  }

  // What a block takes beside the residual stream.
  ValueId mixed(ValueId x, int64_t layer) {
    std::string l = fmt::format("model.layers.{}.", layer);
    if (has_skip(model_, layer))
      x = add(g_, x, mul(g_, outputs_[size_t(model_.layers - 1 - layer)], parameter(l + "skip_scale")));
    if (model_.x0_mix) x = add(g_, mul(g_, x, parameter(l + "x_scale")), mul(g_, x0_, parameter(l + "x0_scale")));
    return x;
  }

  ValueId qkv(ValueId x, int64_t layer, const std::string& at) {
    ValueId q = linear(x, at + "q_proj"), k = linear(x, at + "k_proj"), v = linear(x, at + "v_proj");
    if (model_.qk_norm) q = norm_of_heads(q, at + "q_norm"), k = norm_of_heads(k, at + "k_norm");
    if (model_.has_value_embedding(layer)) {
      ValueId of_tokens = embedding(g_, parameter(at + "value_embed.weight"), tokens_);
      v = add(g_, mul(g_, v, parameter(at + "v_scale")), mul(g_, of_tokens, parameter(at + "value_embed_scale")));
    }
    return rotary_qkv(g_, q, k, v, positions_, rotary_options());
  }

  ValueId hidden(ValueId x, const std::string& at) {
    if (model_.has_gate()) return mul(g_, silu(g_, linear(x, at + "gate_proj")), linear(x, at + "up_proj"));
    ValueId up = linear(x, at + "up_proj");
    return model_.activation == "gelu" ? gelu(g_, up) : relu2(g_, up);
  }

  ValueId norm(ValueId x, const std::string& name) {
    return rms_norm(g_, x, model_.norm_weights ? parameter(name + ".weight") : kNoValue, model_.norm_eps);
  }
  // Of each head by itself: (B, t, heads x D).
  ValueId norm_of_heads(ValueId x, const std::string& name) {
    const Shape shape = g_.shape(x);
    return reshape(g_, norm(reshape(g_, x, {shape[0], shape[1], -1, model_.width_of_head()}), name), shape);
  }

  ValueId tokens_ = kNoValue, positions_ = kNoValue;
  ValueId x0_ = kNoValue;  // the embeddings, as the first block takes them
  ValueIds outputs_;       // of the blocks so far
};

Softcap softcap_of(const ModelConfig& model) { return {model.softcap, model.softcap_shift, model.softcap_width}; }

// tokens (B, T) -> logits (B*T, V), not capped
ValueId bare_logits(GraphBuilder& g, const ModelConfig& model, const LossInputs& in) {
  ModernBuilder builder(g, model, in.rng);
  int64_t B = g.shape(in.tokens)[0], T = g.shape(in.tokens)[1];
  require_context("modern", model, T);
  ValueId positions = cast(g, iota(g, {1, T}, 1), DType::kI32);
  std::map<int64_t, ValueId> seen;  // by window
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if (auto [at, is_new] = seen.try_emplace(model.window_of(layer)); is_new)
      at->second = first_seen(g, at->first, B, T, in.documents.starts, in.window_share);
  auto attend = [&](int64_t layer, ValueId qkv) {
    int64_t window = model.window_of(layer);
    return builder.attend(qkv, seen.at(window), window);
  };
  return builder.logits(in.tokens, positions, attend, in.show_blocks);
}

}  // namespace

ValueId modern_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng, ValueId documents,
                      bool show_blocks) {
  LossInputs in{.tokens = tokens, .rng = rng, .documents = {documents}, .show_blocks = show_blocks};
  return softcap(g, bare_logits(g, model, in), softcap_of(model));
}

ValueId modern_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in) {
  return mean_loss(g, model, bare_logits(g, model, in), in, softcap_of(model));
}

ValueId modern_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in) {
  ModernBuilder builder(g, model, kNoValue);
  auto attend = [&](int64_t layer, ValueId qkv) {
    return builder.attend_cached(layer, qkv, in, model.window_of(layer));
  };
  return softcap(g, builder.logits(in.tokens, in.positions, attend), softcap_of(model));
}

constexpr std::string_view kOptions[] = {
    "kv_heads",         "head_width",     "hidden",
    "window",           "qk_norm",        "norm_eps",
    "rope_theta",       "rope_scaling",   "rope_factor",
    "rope_low_freq",    "rope_high_freq", "rope_original_context",
    "activation",       "norm_weights",   "embedding_norm",
    "zero_init",        "softcap",        "softcap_shift",
    "softcap_width",    "window_pattern", "window_warmup_steps",
    "value_embeddings", "skip_blocks",    "x0_mix",
};

constinit const ModelFamily modern = {.name = "modern",
                                      .parameters = modern_parameters,
                                      .loss = modern_loss,
                                      .decode = modern_decode,
                                      .flops_per_token = modern_flops_per_token,
                                      .options = kOptions};

}  // namespace tokamak
