#include "model/gpt.h"

#include "base/error.h"
#include "config/model_config.h"
#include "graph/builder.h"
#include "model/mean_loss.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"

#include <cmath>
#include <functional>

namespace tokamak {
namespace {

// Turns (B, T, 3C) into (B, T, C) for layer `layer`: the training and the cached form differ in this alone.
using AttentionForm = std::function<ValueId(int64_t layer, ValueId qkv)>;

class GptBuilder {
 public:
  GptBuilder(GraphBuilder& g, const ModelConfig& model, ValueId rng) : g_(g), model_(model), rng_(rng) {
    add_parameters(g, gpt_parameters(model));
  }

  // tokens (B, t), position embeddings (T, C) or (B, t, C) -> logits (B*t, V)
  ValueId logits(ValueId tokens, ValueId positions, const AttentionForm& attend, bool show_blocks = false) {
    ValueId x = add(g_, embedding(g_, parameter("wte.weight"), tokens), positions);  // (B, t, C)
    x = drop(x);
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      x = block(x, layer, attend);
      if (show_blocks) g_.graph().add_result(block_result(layer), x);
    }
    x = norm(x, "ln_f");
    ValueId rows = reshape(g_, x, {-1, model_.width});
    return matmul(g_, rows, parameter(model_.tie_weights ? "wte.weight" : "lm_head.weight"), false, true);
  }

  ValueId parameter(const std::string& name) { return g_.graph().find_argument(name); }

  AttentionOptions attention_options() {
    return {.heads = model_.heads,
            .causal = true,
            .scale = 1 / std::sqrt(double(model_.width / model_.heads)),
            .dropout = model_.dropout,
            .stream = model_.dropout > 0 ? stream_++ : 0};
  }

 private:
  ValueId block(ValueId x, int64_t layer, const AttentionForm& attend) {
    std::string h = fmt::format("h.{}.", layer);
    ValueId a = attend(layer, linear(norm(x, h + "ln_1"), h + "attn.c_attn"));
    x = add(g_, x, drop(linear(a, h + "attn.c_proj")));
    ValueId m = gelu(g_, linear(norm(x, h + "ln_2"), h + "mlp.c_fc"));
    return add(g_, x, drop(linear(m, h + "mlp.c_proj")));
  }

  ValueId norm(ValueId x, const std::string& name) {
    return layer_norm(g_, x, parameter(name + ".weight"), model_.bias ? parameter(name + ".bias") : kNoValue,
                      kLayerNormEps);
  }

  ValueId linear(ValueId x, const std::string& name) {
    ValueId y = matmul(g_, x, parameter(name + ".weight"));
    return model_.bias ? add(g_, y, parameter(name + ".bias")) : y;
  }

  ValueId drop(ValueId x) { return model_.dropout > 0 ? dropout(g_, x, rng_, model_.dropout, stream_++) : x; }

  GraphBuilder& g_;
  const ModelConfig& model_;
  ValueId rng_;
  int64_t stream_ = 0;  // tells the random tensors of a step apart
};

}  // namespace

ValueId gpt_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng, ValueId documents,
                   bool show_blocks) {
  GptBuilder gpt(g, model, rng);
  int64_t T = g.shape(tokens)[1];
  if (T > model.context)
    user_error("[gpt] expected sequences of at most model.context = {} tokens, got {}", model.context, T);
  ValueId positions = slice(g, gpt.parameter("wpe.weight"), 0, 0, T);  // (T, C)
  auto attend = [&](int64_t, ValueId qkv) { return attention(g, qkv, gpt.attention_options(), rng, documents); };
  return gpt.logits(tokens, positions, attend, show_blocks);
}

ValueId gpt_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in) {
  return mean_loss(g, model, gpt_logits(g, model, in.tokens, in.rng, in.documents.starts, in.show_blocks), in);
}

ValueId gpt_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in) {
  GptBuilder gpt(g, model, kNoValue);
  int64_t B = g.shape(in.tokens)[0];
  ValueId embedded = embedding(g, gpt.parameter("wpe.weight"), in.positions);  // (B, t, C)
  double scale = gpt.attention_options().scale;
  return gpt.logits(in.tokens, embedded, [&](int64_t layer, ValueId qkv) {
    ValueType type{in.cache, {B, model.context, 2 * model.width}};
    Layout layout{.role = Role::kCache, .global = type.shape, .blocks = 2};  // keys and values
    ValueId cache = g.graph().add_argument(Argument::Kind::kState, fmt::format("cache.{}", layer), type, layout);
    auto [out, updated] = attention_decode(g, qkv, cache, in.start, model.heads, scale);
    g.graph().add_update(cache, updated);
    return out;
  });
}

constinit const ModelFamily gpt2 = {.name = "gpt2",
                                    .parameters = gpt_parameters,
                                    .loss = gpt_loss,
                                    .decode = gpt_decode,
                                    .flops_per_token = gpt_flops_per_token,
                                    .hugging_face = &gpt2_hugging_face};

}  // namespace tokamak
