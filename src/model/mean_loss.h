// What the losses of all families end with.
#pragma once

#include "model/model.h"

namespace tokamak {

/// logits (B*T, V) -> f32[], as ModelFamily::loss says.
ValueId mean_loss(GraphBuilder& g, const ModelConfig& model, ValueId logits, const LossInputs& in);

}  // namespace tokamak
