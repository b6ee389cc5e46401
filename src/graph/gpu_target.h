// The target that a GPU is: rates of its units from its compute capability and clock, and what large kernels reach of
// them. Of a device that is there, or of a description. Tests: tests/graph/gpu_target_test.cpp.
#pragma once

#include "config/gpu_config.h"
#include "graph/target.h"

namespace tokamak {

struct GpuRates {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  double clock = 0;           // Hz
  double copy_bandwidth = 0;  // bytes/s that a plain copy reads and writes
  double l2_bytes = 0;
};

/// What a long run leaves of the clock at which a GPU has the rates of its datasheet; the usual share where the
/// description does not say.
double load_clock(const GpuConfig& gpu);

/// Of a described GPU: load_clock of the clock at which its units have the described rate of bf16, and a copy's usual
/// share of the bandwidth.
GpuRates gpu_rates(const GpuConfig& gpu);

/// The bandwidth that a GPU with such a target would be described with.
double described_bandwidth(const Target& target);

/// What of a GPU's rates under load is left while GPUs copy between them all the time: links take of its power, too. Of
/// another device: the same.
Target with_awake_links(Target target);

/// Without links, which are of a cluster: those of the defaults of a target.
Target gpu_target(const GpuRates& gpu);

}  // namespace tokamak
