#include "model/gpt.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "model/mean_loss.h"
#include "model/transformer.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

class GptBuilder : public TransformerBuilder {
 public:
  GptBuilder(GraphBuilder& g, const ModelConfig& model, ValueId rng)
      : TransformerBuilder(g, model, gpt_parameters(model), model.width / model.heads, rng) {}

  // tokens (B, t), position embeddings (T, C) or (B, t, C) -> logits (B*t, V)
  ValueId logits(ValueId tokens, ValueId positions, const AttentionForm& attend, bool show_blocks = false) {
    ValueId x = add(g_, embedding(g_, parameter("wte.weight"), tokens), positions);  // (B, t, C)
    x = blocks(
        drop(x), [&](ValueId of, int64_t layer) { return block(of, layer, attend); }, show_blocks);
    return last_layer(norm(x, "ln_f"), model_.tie_weights ? "wte.weight" : "lm_head.weight");
  }

 private:
  ValueId block(ValueId x, int64_t layer, const AttentionForm& attend) {
    std::string h = fmt::format("h.{}.", layer);
    ValueId a = attend(layer, biased(norm(x, h + "ln_1"), h + "attn.c_attn"));
    x = add(g_, x, drop(biased(a, h + "attn.c_proj")));
    ValueId m = gelu(g_, biased(norm(x, h + "ln_2"), h + "mlp.c_fc"));
    return add(g_, x, drop(biased(m, h + "mlp.c_proj")));
  }

  ValueId norm(ValueId x, const std::string& name) {
    return layer_norm(g_, x, parameter(name + ".weight"), model_.bias ? parameter(name + ".bias") : kNoValue,
                      kLayerNormEps);
  }

  // Its matrices are (in, out).
  ValueId biased(ValueId x, const std::string& name) {
    ValueId y = matmul(g_, x, parameter(name + ".weight"));
    return model_.bias ? add(g_, y, parameter(name + ".bias")) : y;
  }
};

}  // namespace

ValueId gpt_logits(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId rng, ValueId documents,
                   bool show_blocks) {
  GptBuilder gpt(g, model, rng);
  int64_t T = g.shape(tokens)[1];
  require_context("gpt", model, T);
  ValueId positions = slice(g, gpt.parameter("wpe.weight"), 0, 0, T);  // (T, C)
  auto attend = [&](int64_t, ValueId qkv) { return gpt.attend(qkv, documents); };
  return gpt.logits(tokens, positions, attend, show_blocks);
}

ValueId gpt_loss(GraphBuilder& g, const ModelConfig& model, const LossInputs& in) {
  return mean_loss(g, model, gpt_logits(g, model, in.tokens, in.rng, in.documents.starts, in.show_blocks), in);
}

ValueId gpt_decode(GraphBuilder& g, const ModelConfig& model, const DecodeInputs& in) {
  GptBuilder gpt(g, model, kNoValue);
  ValueId embedded = embedding(g, gpt.parameter("wpe.weight"), in.positions);  // (B, t, C)
  return gpt.logits(in.tokens, embedded, [&](int64_t layer, ValueId qkv) { return gpt.attend_cached(layer, qkv, in); });
}

constexpr std::string_view kOptions[] = {"bias"};

constinit const ModelFamily gpt2 = {.name = "gpt2",
                                    .parameters = gpt_parameters,
                                    .loss = gpt_loss,
                                    .decode = gpt_decode,
                                    .flops_per_token = gpt_flops_per_token,
                                    .options = kOptions,
                                    .hugging_face = &gpt2_hugging_face};

}  // namespace tokamak
