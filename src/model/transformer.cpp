#include "model/transformer.h"

#include "base/error.h"
#include "config/model_config.h"
#include "graph/builder.h"
#include "ops/attention_decode.h"
#include "ops/dropout.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <fmt/core.h>

#include <cmath>

namespace tokamak {

TransformerBuilder::TransformerBuilder(GraphBuilder& g, const ModelConfig& model,
                                       const std::vector<ParameterInfo>& parameters, int64_t head_width, ValueId rng)
    : g_(g), model_(model), head_width_(head_width), rng_(rng) {
  add_parameters(g, parameters);
}

ValueId TransformerBuilder::parameter(const std::string& name) const { return g_.graph().find_argument(name); }

double TransformerBuilder::scale() const { return 1 / std::sqrt(double(head_width_)); }

ValueId TransformerBuilder::attend(ValueId qkv, ValueId documents, int64_t window) {
  AttentionOptions options{.heads = model_.heads,
                           .causal = true,
                           .scale = scale(),
                           .dropout = model_.dropout,
                           .random_stream = model_.dropout > 0 ? random_stream_++ : 0,
                           .window = window};
  return attention(g_, qkv, options, rng_, documents);
}

ValueId TransformerBuilder::attend_cached(int64_t layer, ValueId qkv, const DecodeInputs& in, int64_t window) {
  int64_t B = g_.shape(in.tokens)[0];
  ValueType type{in.cache, {B, model_.context, 2 * model_.heads * head_width_}};
  int64_t group = model_.heads / model_.num_kv_heads() * head_width_;
  ArgumentSpec spec{.role = Role::kCache, .global = type.shape, .blocks = 2, .unit = group};  // keys and values
  ValueId cache = g_.graph().add_argument(Argument::Kind::kState, fmt::format("cache.{}", layer), type, spec);
  auto [out, updated] = attention_decode(g_, qkv, cache, in.start, model_.heads, scale(), window);
  g_.graph().add_update(cache, updated);
  return out;
}

ValueId TransformerBuilder::blocks(ValueId x, const std::function<ValueId(ValueId, int64_t)>& block, bool show_blocks) {
  if (show_blocks) g_.graph().add_result(block_result(-1), x);
  for (int64_t layer = 0; layer < model_.layers; ++layer) {
    x = block(x, layer);
    if (show_blocks) g_.graph().add_result(block_result(layer), x);
  }
  return x;
}

ValueId TransformerBuilder::last_layer(ValueId x, const std::string& weight) {
  return matmul(g_, reshape(g_, x, {-1, model_.width}), parameter(weight), false, true);
}

ValueId TransformerBuilder::linear(ValueId x, const std::string& name) {
  return matmul(g_, x, parameter(name + ".weight"), false, true);
}

ValueId TransformerBuilder::drop(ValueId x) {
  return model_.dropout > 0 ? dropout(g_, x, rng_, model_.dropout, random_stream_++) : x;
}

RotaryOptions TransformerBuilder::rotary_options() const {
  bool llama3 = model_.rope_scaling == "llama3";
  return {.head_width = head_width_,
          .theta = model_.rope_theta,
          .factor = model_.rope_scaling == "none" ? 1 : model_.rope_factor,
          .original_context = llama3 ? model_.rope_original_context : 0,
          .low_freq = model_.rope_low_freq,
          .high_freq = model_.rope_high_freq};
}

void require_context(const char* where, const ModelConfig& model, int64_t T) {
  if (T > model.context)
    user_error("[{}] expected sequences of at most model.context = {} tokens, got {}", where, model.context, T);
}

// For attention a window is a document of its own beginning for each position (ops/attention.h).
ValueId first_seen(GraphBuilder& g, int64_t window, int64_t B, int64_t T, ValueId documents, ValueId share) {
  bool sees_all = window == 0 || window >= T;
  if (sees_all && share == kNoValue) return documents;
  ValueId before = constant(g, double(window - 1));
  if (share != kNoValue) {
    ValueId length = mul(g, share, constant(g, double(sees_all ? T : window)));
    ValueId whole = cast(g, cast(g, length, DType::kI32), DType::kF32);
    before = maximum(g, sub(g, whole, constant(g, 1)), constant(g, 0));
  }
  ValueId first = sub(g, iota(g, {B, T}, 1), before);
  ValueId least = documents == kNoValue ? constant(g, 0) : cast(g, documents, DType::kF32);
  return cast(g, maximum(g, first, least), DType::kI32);
}

}  // namespace tokamak
