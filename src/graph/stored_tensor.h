// A parameter or state that outlives a step.
#pragma once

#include "graph/argument_spec.h"
#include "graph/type.h"

#include <string>
#include <vector>

namespace tokamak {

/// What a store keeps of an argument.
struct StoredTensor {
  std::string name;
  ValueType type;
  ArgumentSpec spec;
  int64_t buffers = 1;               // so many of it, for as many micro-batches at a time
  std::vector<int64_t> stages = {};  // of a pipeline, that have it; empty: all
};

}  // namespace tokamak
