// The kernels of a plan, those that differ only in their operands as one. Tests: tests/plan/print_plan_test.cpp.
#pragma once

#include "plan/plan.h"

#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct KernelLine {
  std::string label;   // kernel_label(), and of a product its name (product_names.h): "matmul mlp.c_fc wgrad"
  std::string shape;   // of the output
  int node = 0;        // the first of them
  Cost cost;           // of all of them, as all that follows
  double seconds = 0;  // predicted
  double measured = 0;
  int count = 0;
  bool memory_bound = false;

  /// Sums of costs, seconds and counts.
  void add(const KernelLine& other);
};

/// Those that take longest first; `measured`: seconds by launch, or nothing.
std::vector<KernelLine> kernel_lines(const Plan& plan, std::span<const double> measured = {});

}  // namespace tokamak
