#include "model/llama.h"

#include "base/error.h"
#include "config/model_config.h"
#include "graph/builder.h"
#include "model/mean_loss.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/rms_norm.h"
#include "ops/rotary.h"

#include <cmath>
#include <functional>

namespace tokamak {
namespace {

// Turns (B, T, 3 H D) into (B, T, H D) for layer `layer`: the training and the cached form differ in this alone.
using AttentionForm = std::function<ValueId(int64_t layer, ValueId qkv)>;

class LlamaBuilder {
 public:
  LlamaBuilder(GraphBuilder& g, const ModelConfig& model, ValueId rng) : g_(g), model_(model), rng_(rng) {
    add_parameters(g, llama_parameters(model));
  }

  // tokens (B, t), positions i32 (B, t) or (1, t) -> logits (B*t, V)
  ValueId logits(ValueId tokens, ValueId positions, const AttentionForm& attend, bool show_blocks = false) {
    ValueId x = drop(embedding(g_, parameter("model.embed_tokens.weight"), tokens));  // (B, t, C)
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      x = block(x, layer, positions, attend);
      if (show_blocks) g_.graph().add_result(block_result(layer), x);
    }
    ValueId rows = reshape(g_, norm(x, "model.norm"), {-1, model_.width});
    return matmul(g_, rows, parameter(model_.tie_weights ? "model.embed_tokens.weight" : "lm_head.weight"), false,
                  true);
  }

  AttentionOptions attention_options() {
    return {.heads = model_.heads,
            .causal = true,
            .scale = 1 / std::sqrt(double(model_.width_of_head())),
            .dropout = model_.dropout,
            .stream = model_.dropout > 0 ? stream_++ : 0};
  }

 private:
  ValueId parameter(const std::string& name) { return g_.graph().find_argument(name); }

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

  RotaryOptions rotary_options() const {
    bool llama3 = model_.rope_scaling == "llama3";
    return {.head_width = model_.width_of_head(),
            .theta = model_.rope_theta,
            .factor = model_.rope_scaling == "none" ? 1 : model_.rope_factor,
            .original_context = llama3 ? model_.rope_original_context : 0,
            .low_freq = model_.rope_low_freq,
            .high_freq = model_.rope_high_freq};
  }

  ValueId norm(ValueId x, const std::string& name) {
    return rms_norm(g_, x, parameter(name + ".weight"), model_.norm_eps);
  }
  // Of each head by itself: (B, t, heads x D).
  ValueId norm_of_heads(ValueId x, const std::string& name) {
    const Shape shape = g_.shape(x);
    return reshape(g_, norm(reshape(g_, x, {shape[0], shape[1], -1, model_.width_of_head()}), name), shape);
  }

  ValueId linear(ValueId x, const std::string& name) { return matmul(g_, x, parameter(name + ".weight"), false, true); }
  ValueId biased(ValueId x, const std::string& name) {
    ValueId y = linear(x, name);
    return model_.qkv_bias ? add(g_, y, parameter(name + ".bias")) : y;
  }

  ValueId drop(ValueId x) { return model_.dropout > 0 ? dropout(g_, x, rng_, model_.dropout, stream_++) : x; }

  GraphBuilder& g_;
  const ModelConfig& model_;
  ValueId rng_;
  int64_t stream_ = 0;  // tells the random tensors of a step apart
};

// With a window a position sees its document from its last `window` tokens on: for attention that is a document of its
// own beginning (ops/attention.h).
ValueId first_seen(GraphBuilder& g, const ModelConfig& model, int64_t B, int64_t T, ValueId documents) {
  if (model.window == 0 || model.window >= T) return documents;
  ValueId first = sub(g, iota(g, {B, T}, 1), constant(g, double(model.window - 1)));
  ValueId least = documents == kNoValue ? constant(g, 0) : cast(g, documents, DType::kF32);
  return cast(g, maximum(g, first, least), DType::kI32);
}

}  // namespace

ValueId llama_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng, ValueId documents,
                     bool show_blocks) {
  LlamaBuilder builder(g, model, rng);
  int64_t B = g.shape(tokens)[0], T = g.shape(tokens)[1];
  if (T > model.context)
    user_error("[llama] expected sequences of at most model.context = {} tokens, got {}", model.context, T);
  ValueId positions = cast(g, iota(g, {1, T}, 1), DType::kI32), seen = first_seen(g, model, B, T, documents);
  auto attend = [&](int64_t, ValueId qkv) { return attention(g, qkv, builder.attention_options(), rng, seen); };
  return builder.logits(tokens, positions, attend, show_blocks);
}

ValueId llama_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in) {
  return mean_loss(g, model, llama_logits(g, model, in.tokens, in.rng, in.documents.starts, in.show_blocks), in);
}

ValueId llama_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in) {
  LlamaBuilder builder(g, model, kNoValue);
  int64_t B = g.shape(in.tokens)[0], width = model.heads * model.width_of_head();
  double scale = builder.attention_options().scale;
  return builder.logits(in.tokens, in.positions, [&](int64_t layer, ValueId qkv) {
    ValueType type{in.cache, {B, model.context, 2 * width}};
    Layout layout{.role = Role::kCache, .global = type.shape, .blocks = 2};  // keys and values
    ValueId cache = g.graph().add_argument(Argument::Kind::kState, fmt::format("cache.{}", layer), type, layout);
    auto [out, updated] = attention_decode(g, qkv, cache, in.start, model.heads, scale, model.window);
    g.graph().add_update(cache, updated);
    return out;
  });
}

constinit const ModelFamily llama = {.name = "llama",
                                     .parameters = llama_parameters,
                                     .loss = llama_loss,
                                     .decode = llama_decode,
                                     .flops_per_token = llama_flops_per_token,
                                     .hugging_face = &llama_hugging_face};

}  // namespace tokamak
