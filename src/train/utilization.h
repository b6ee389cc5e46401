// Model FLOPs utilization (MFU): which share of the machine's peak the arithmetic of the model itself takes.
// Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (2022), appendix B. Recomputed values and padding
// do not count as work; model/model.h counts what does. Tests: tests/train/utilization_test.cpp.
#pragma once

#include "config/precision.h"
#include "graph/target.h"

#include <string>
#include <string_view>

namespace tokamak {

struct Peak {
  double flops = 0;  // FLOP/s
  std::string name;  // "989 TFLOP/s (H200 datasheet, bf16 dense)"
};

/// The peak of matmuls at a resolved precision: the vendor's number for known GPUs (config/gpus.h), else the matmul
/// rate of the target.
Peak peak_of(const Target& target, Precision precision);

}  // namespace tokamak
