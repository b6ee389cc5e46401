// What the families of transformers are written with: parameters by name, dropout, the loop over blocks, both forms of
// attention, rotary positions and the last layer. Legend: B batch, T time, C width, H heads, D width of a head, V
// vocabulary. Tests: those of the families in tests/model.
#pragma once

#include "model/model.h"
#include "ops/attention.h"
#include "ops/rotary.h"

#include <functional>

namespace tokamak {

/// Turns the packed projection (B, T, 3 H D) into (B, T, H D) for layer `layer`: the training and the cached form
/// differ in this alone.
using AttentionForm = std::function<ValueId(int64_t layer, ValueId qkv)>;

class TransformerBuilder {
 public:
  /// Appends the parameters. `rng` as in LossInputs.
  TransformerBuilder(GraphBuilder& g, const ModelConfig& model, const std::vector<ParameterInfo>& parameters,
                     int64_t head_width, ValueId rng);

  ValueId parameter(const std::string& name) const;

  /// Attention over a whole sequence; `documents` and `window` as in ops/attention.h.
  ValueId attend(ValueId qkv, ValueId documents, int64_t window = 0);
  /// Attention of the next tokens, with the state cache.<layer> (B, context, 2 H D); `window` as in
  /// ops/attention_decode.h.
  ValueId attend_cached(int64_t layer, ValueId qkv, const DecodeInputs& in, int64_t window = 0);

 protected:
  /// The blocks in their order; with `show_blocks` what each gives becomes a result.
  ValueId blocks(ValueId x, const std::function<ValueId(ValueId x, int64_t layer)>& block, bool show_blocks);
  /// x (B, T, C), weight (V, C) -> (B*T, V)
  ValueId last_layer(ValueId x, const std::string& weight);
  /// x times the matrix "<name>.weight", which is stored (out, in).
  ValueId linear(ValueId x, const std::string& name);
  ValueId drop(ValueId x);
  RotaryOptions rotary_options() const;

  GraphBuilder& g_;
  const ModelConfig& model_;

 private:
  double scale() const;  // of attention's scores

  int64_t head_width_;
  ValueId rng_;
  int64_t random_stream_ = 0;  // tells the random tensors of a step apart
};

/// UserError, which begins with [where], for sequences that are longer than model.context.
void require_context(const char* where, const ModelConfig& model, int64_t T);

/// The first position that each one of (B, T) sees, i32, as attention takes documents: with a window (0: none) from the
/// last `window` tokens of its document on. `documents` may be kNoValue, and then so may be what comes back. `share` is
/// kNoValue, or f32[]: what the window (without one the sequence) is of its length, rounded down, but 1 token at least.
ValueId first_seen(GraphBuilder& g, int64_t window, int64_t B, int64_t T, ValueId documents, ValueId share = kNoValue);

}  // namespace tokamak
