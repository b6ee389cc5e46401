// When the collectives of a backward pass run, in closed form. They stand in one queue in the order of the compiled
// step, so what a kernel waits for comes after the gradients that were sent before it.
// Tests: tests/advise/backward_timeline_test.cpp.
#pragma once

#include "advise/block_work.h"

#include <array>

namespace tokamak {

/// Seconds over the links of one matrix: of its gradient, over the first axis by itself, where there are two, and as
/// part of a bucket over the second or the only one.
struct MatrixLinks {
  double alone = 0, in_bucket = 0;
  double share = 1;           // of a bucket, what it fills
  bool is_scattered = false;  // and else added up: they have buckets of their own
  double parameters = 0;      // gathered again
  double parameter_bytes = 0;
};

/// Seconds of a block's collectives; 0: there are none.
struct BlockLinks {
  double stream = 0;                    // of tensor ranks' stream, a gather or a scatter
  double keys = 0;                      // of keys and values over context, a gather, or a scatter of their gradients
  bool sends_keys_early = false;        // beside products for weights (passes/overlap.h)
  bool computes_weights_later = false;  // when all else has been: such products hide nothing of it
  std::array<MatrixLinks, 4> matrices;  // of MLP down and up, attention's projection, queries, keys and values
  double bucket_latency = 0;
  double gather_bytes = 0, ahead_bytes = 0;  // of a bucket of parameters; and of one that is gathered before it is read
  double norm_vectors = 0, bias_vector = 0;  // gradients that no bucket has, behind a norm, and of another bias
  double units = 0;                          // share of the device that a collective takes from kernels beside it
};

/// Seconds of a backward pass.
struct BackwardTimeline {
  double stream = 0, keys = 0, gradients = 0;  // in which nothing else runs, as a kernel or the end waits for them
  double slowed = 0;                           // that kernels take longer beside collectives
};

/// `again`: forward work that each block does again.
BackwardTimeline backward_timeline(int64_t blocks, const BackwardParts& parts, const Work& again,
                                   const BlockLinks& links);

}  // namespace tokamak
