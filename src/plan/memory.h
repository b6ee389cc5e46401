// What fills the memory of a plan, and the error when it does not fit. Tests: tests/plan/memory_test.cpp.
#pragma once

#include "plan/plan.h"

#include <functional>
#include <string>
#include <vector>

namespace tokamak {

struct NamedTensor {
  std::string name;  // of the argument or result, else the op and the first parameter or input that it reads
  ValueType type;
  int64_t bytes = 0;
};

struct MemoryPeak {
  int node = 0;                      // the first node at which most of the arena is alive
  std::vector<NamedTensor> largest;  // alive then, arguments included, largest first
};

MemoryPeak find_peak(const Plan& plan, size_t count = 5);

/// Lines: bytes by kind, and the largest tensors alive at the peak.
std::string format_memory(const Plan& plan);

/// Throws UserError that names the planned peak, what there is and the largest tensors, and ends with the advice, which
/// is asked for only then.
void require_fits(const Plan& plan, int64_t available_bytes, const std::function<std::string()>& advice);

/// Name of a value for people: see NamedTensor.
std::string value_name(const Graph& graph, ValueId value);

}  // namespace tokamak
