// How long kernels take on a backend: for predictions, and for choices between two ways of computing the same.
#pragma once

#include "backend/backend.h"
#include "plan/plan.h"

#include <functional>
#include <map>
#include <string>

namespace tokamak {

/// Times single nodes. Memory for their operands is kept from one to the next.
class NodeMeter {
 public:
  explicit NodeMeter(Backend& backend) : backend_(backend) {}

  /// Seconds of the node's kernel alone, on random operands: the median of a few repeats. As in a step, its launch is
  /// hidden: it begins while others still run, and a short one runs many times in a repeat.
  double seconds(const Graph& graph, const Node& node);

 private:
  double seconds_each(const std::function<void()>& run, int count);
  void fill(std::byte* to, const ValueType& type);

  Backend& backend_;
  std::unique_ptr<Memory> operands_;
  int64_t bytes_ = 0;  // of operands_
  std::map<DType, std::vector<std::byte>> patterns_;
};

/// The plan's kernels whose speed is a library's affair (matmuls, attention): by kernel_key of the node's kernel
/// (kernel_node in ops/row_block.h), the first node of each.
std::map<std::string, int> library_kernels(const Plan& plan);

}  // namespace tokamak
