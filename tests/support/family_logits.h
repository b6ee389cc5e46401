// The logits of a model of any family.
#pragma once

#include "config/model_config.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/modern.h"

namespace tokamak::test {

/// tokens (B, T) -> logits (B*T, V), as generation chooses from them.
inline ValueId logits_of(GraphBuilder& g, const ModelConfig& model, ValueId tokens, ValueId documents = kNoValue) {
  auto* logits = model.family == "llama" ? llama_logits : model.family == "modern" ? modern_logits : gpt_logits;
  return logits(g, model, tokens, kNoValue, documents, false);
}

}  // namespace tokamak::test
