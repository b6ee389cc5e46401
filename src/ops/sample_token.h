// The end of a step of generation: each row's next token, chosen where the logits are (ops/sampler.h has the rule).
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef sample_token;
}  // namespace op

/// What a step of generation goes on from, each i32 (B). Tokens that lie in the cache, and tokens that were chosen so
/// far, which is the number of the next random number.
struct SampledStep {
  ValueId token = kNoValue, position = kNoValue, drawn = kNoValue;
};

/// logits (B, V), of which the first `vocab` columns count; seeds i32 (B, 2), the low and the high word of each row's;
/// settings f32 (3): temperature, top_k, top_p. -> the chosen tokens (kNoToken: broken logits), and the others of
/// `before` one on; a position stays below `places`.
SampledStep sample_token(GraphBuilder& g, ValueId logits, const SampledStep& before, ValueId seeds, ValueId settings,
                         int64_t vocab, int64_t places);

}  // namespace tokamak
