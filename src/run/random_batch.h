// Tokens that stand for data where only speed counts.
#pragma once

#include "base/random.h"
#include "compile/resolved_run.h"
#include "data/loader.h"

namespace tokamak {

/// A micro-batch of uniform tokens and targets, the same for the same seed. Where documents are kept apart each sample
/// is one, which costs attention most.
inline Batch random_batch(const ResolvedRun& run, uint64_t seed) {
  Batch batch;
  const ModelConfig& model = run.asked.model;
  int64_t size = run.batch * model.context;
  uint64_t counter = 0;
  auto draw = [&] { return int32_t(philox4x32(seed, counter++)[0] % uint64_t(model.vocab)); };
  for (int64_t i = 0; i < size; ++i) {
    batch.tokens.push_back(draw());
    batch.targets.push_back(draw());
  }
  if (run.asked.data.mask_documents) batch.documents.assign(size_t(size), 0);
  return batch;
}

}  // namespace tokamak
