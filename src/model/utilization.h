// Model FLOPs utilization (MFU): which share of the peak of all devices together the arithmetic of the model itself
// takes. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (2022), appendix B. Recomputed values and
// padding do not count as work; model/model.h counts what does. All that training, ladder and plan say of FLOPs that
// were reached is this. Tests: tests/model/utilization_test.cpp.
#pragma once

#include "config/precision.h"
#include "graph/target.h"
#include "model/model.h"

#include <string>
#include <string_view>

namespace tokamak {

struct Peak {
  double flops = 0;  // FLOP/s
  std::string name;  // "989 TFLOP/s (H200 datasheet, bf16 dense)"

  std::string of_ranks(int64_t ranks) const;  // "2 x 989 TFLOP/s (H200 datasheet, bf16 dense)"
};

/// The peak of matmuls at a resolved precision: the vendor's number for known GPUs (config/gpus.h), else the matmul
/// rate of the target.
Peak peak_of(const Target& target, Precision precision);

struct Utilization {
  double flops = 0;   // the model's, a second
  double full = 0;    // MFU, with all of attention; 0: the peak is not known
  double causal = 0;  // the same with the half of attention that the mask lets through
};

/// Of all tokens a second that devices with `peak` FLOP/s together train on. A share can be more than 1 where the peak
/// is a measured one: it was measured while something else ran, or half of attention is counted that is not computed.
Utilization utilization(const FlopsPerToken& flops, double tokens_per_second, double peak);

}  // namespace tokamak
