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

  /// Seconds of the node's kernel alone, on random operands: the median of a few runs after one that warms up. Of
  /// kernels that are no library's, many of which are short, what a second run behind the first adds, a tenth of one at
  /// least: as in a step, the launch is hidden.
  double seconds(const Graph& graph, const Node& node);

 private:
  double median_seconds(const std::function<void()>& work);
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
