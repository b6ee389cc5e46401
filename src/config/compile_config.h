// What the compiler may do with a step.
#pragma once

#include "config/precision.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

/// What the backward pass computes again: as much as a budget of memory asks for; all that takes no matrix product, no
/// attention and no collective; all but what blocks give to each other.
inline constexpr const char* kRecompute[] = {"auto", "selective", "full"};

struct CompileConfig {
  double loss_scale = 65536;                  // with fp16: what the loss is multiplied by at first
  int64_t loss_scale_growth_interval = 2000;  // good steps after which the scale doubles
  Precision precision = Precision::kAuto;     // of the matrix products
  bool low_residual = true;      // with bf16 and fp16: the residual stream and its gradient are in that type too
  bool async = true;             // never wait for a value that is only printed
  bool cuda_graph = true;        // record a program's launches once and replay them
  bool chain = true;             // of text: kernels begin while those before them run (backend/chained.h)
  bool deterministic = true;     // the same bits from run to run
  bool strict = false;           // a step with nodes for which the device has no kernel is refused
  bool fp8_attention = true;     // with fp8: what attention gives, and its gradient, have eight bits in products
  int64_t streams = 1;           // 2: gradients that only the update reads are computed beside the others
  double memory_budget_gib = 0;  // activations are recomputed to fit; 0: no limit
  std::string recompute = kRecompute[0];    // what is computed again, where there is no budget
  std::vector<std::string> fp8_except;      // with fp8: kinds of weights (ops/parameter_kind.h) that have bf16
  std::vector<std::string> disable_passes;  // by name (passes/pipeline.cpp)
};

}  // namespace tokamak
