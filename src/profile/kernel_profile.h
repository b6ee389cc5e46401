// The kernels of profiled steps: what each took, beside what it should. Tests: tests/profile/kernel_profile_test.cpp.
#pragma once

#include "ops/work_class.h"
#include "profile/profiler.h"

#include <string>
#include <vector>

namespace tokamak {

/// Kernels of a program that differ only in their operands; numbers are sums over an optimizer step.
struct KernelProfile {
  std::string program, label, shape;
  WorkClass work = WorkClass::kMatmul;
  double count = 0;
  double flops = 0, bytes = 0, link_bytes = 0;
  double seconds = 0;         // measured
  double predicted = 0;       // by the planner
  double roof = 0;            // the least that the target's rates of arithmetic and memory allow, without launches
  bool memory_bound = false;  // which of the two that is
  std::string tensor_cores;   // tensor_core_use(); empty on a CPU

  /// Share of what the roof allows that was reached.
  double of_roof() const { return seconds > 0 ? roof / seconds : 0; }
};

/// Those that took longest first. `has_tensor_cores`: of the device.
std::vector<KernelProfile> kernel_profiles(const Session& session, const StepProfile& profile, const Platform& platform,
                                           bool has_tensor_cores);

/// Where forward and backward pass spend FLOPs and time, in the three classes of Ivanov et al., "Data Movement Is All
/// You Need" (2020), table 1: tensor contraction, statistical normalisation, element-wise.
struct OperatorClass {
  std::string name;
  double flops = 0, seconds = 0;
};
std::vector<OperatorClass> operator_classes(const std::vector<KernelProfile>& kernels);

}  // namespace tokamak
