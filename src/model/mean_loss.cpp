#include "model/mean_loss.h"

#include "config/model_config.h"
#include "graph/builder.h"
#include "ops/argmax.h"
#include "ops/cross_entropy.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak {

ValueId mean_loss(GraphBuilder& g, const ModelConfig& model, ValueId logits, const LossInputs& in,
                  const Softcap& softcap) {
  int64_t rows = g.shape(logits)[0];
  ValueId losses = cross_entropy(g, logits, reshape(g, in.targets, {rows}), model.vocab, softcap);  // (B*T)
  if (in.show_scores) {  // a soft cap rises with the logits, so the largest stays the largest
    g.graph().add_result(kTokenLosses, losses);
    g.graph().add_result(kTokenChoices, argmax(g, logits, model.vocab));
  }
  bool weighted = in.documents.loss_weight != kNoValue;
  ValueId weight = weighted ? in.documents.loss_weight : constant(g, 1.0 / double(rows));
  return mul(g, reduce_sum(g, losses, {0}, false), weight);
}

}  // namespace tokamak
