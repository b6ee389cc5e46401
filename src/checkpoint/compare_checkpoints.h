// What differs between two checkpoints or models, tensor by tensor; of their bytes a piece at a time is in memory.
// Tests: tests/checkpoint/compare_checkpoints_test.cpp, tests/e2e/checkpoint_commands_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"
#include "graph/type.h"

namespace tokamak {

/// A tensor of one or both.
struct TensorDifference {
  std::string name;
  std::optional<ValueType> a, b;  // nothing: it has none of that name
  int64_t differing = 0;          // elements whose bits differ; whose values, where the types do
  int64_t first = -1;             // the first of them, row-major
  double largest = 0;             // |a - b|; infinite where one of them is not finite
  double relative = 0;            // the largest |a - b| / max(|a|, |b|)
  std::optional<int64_t> ulps;  // most floats from one to the other, 0 and -0 being one; nothing: the types differ, or
                                // are no floats

  /// Whether elements were compared.
  bool is_compared() const { return a && b && a->shape == b->shape; }
  bool is_equal() const { return a && a == b && differing == 0; }
};

struct CheckpointDifference {
  std::vector<TensorDifference> tensors;  // parameters, then the optimizer's states, each by name
  bool has_states = true;                 // false: one of the two is a model alone, so that states were not compared

  bool is_equal() const;
};

/// Of what open_unverified() gave. UserErrors: a tensor of a type that none of ours has, and damaged headers.
CheckpointDifference compare_checkpoints(const FoundCheckpoint& a, const FoundCheckpoint& b);

}  // namespace tokamak
