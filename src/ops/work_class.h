// What kind of work a node is, as accounts of a step's time name it. Tests: tests/ops/work_class_test.cpp.
#pragma once

#include "graph/graph.h"

#include <array>
#include <string_view>

namespace tokamak {

enum class WorkClass : uint8_t {
  kMatmul,         // products, with what they do before they store; of the classifier's op also the loss
  kAttention,      // as one kernel
  kNormalisation,  // what reduces: norms, softmax, loss, sums of gradients
  kElementwise,
  kOptimizer,      // all of the update but collectives
  kCommunication,  // collectives, transfers between stages
  kCopy,           // what only moves elements
};
inline constexpr std::array kWorkClasses{WorkClass::kMatmul,      WorkClass::kAttention, WorkClass::kNormalisation,
                                         WorkClass::kElementwise, WorkClass::kOptimizer, WorkClass::kCommunication,
                                         WorkClass::kCopy};

/// "matmul", "element-wise"
std::string_view to_string(WorkClass work);

WorkClass work_class(const Node& node);

}  // namespace tokamak
