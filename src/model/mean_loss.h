// What the losses of all families end with.
#pragma once

#include "model/model.h"
#include "ops/softcap.h"

namespace tokamak {

/// logits (B*T, V) -> f32[], as ModelFamily::loss says. A soft cap is the loss's own, so that capped logits are nowhere
/// in memory.
ValueId mean_loss(GraphBuilder& g, const ModelConfig& model, ValueId logits, const LossInputs& in,
                  const Softcap& softcap = {});

}  // namespace tokamak
