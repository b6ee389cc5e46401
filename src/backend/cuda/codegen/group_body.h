// A group's body as the code generator sees it: no views, every value known by whether it varies along the rows and
// along the columns of the group's matrix. Tests: tests/backend/cuda/codegen_test.cpp
#pragma once

#include "graph/graph.h"
#include "graph/op_def.h"

#include <vector>

namespace tokamak::cuda {

struct BodyValue {
  const Node* node = nullptr;  // of the body; null: an argument
  int argument = -1;           // index of the argument, or of the rng that a random_uniform reads
  DType dtype = DType::kF32;
  bool along_rows = false, along_cols = false;
  std::vector<int> operands;  // indices of earlier values

  bool is(const OpDef& op) const { return node && node->op == &op; }
  bool is_argument() const { return !node; }
  bool is_reduction() const { return node && node->op->fusion == Fusion::kReduction; }
  bool reduces_rows() const { return is_reduction() && node->attrs.get_ints("dims") == std::vector<int64_t>{0}; }
  bool reduces_cols() const { return is_reduction() && !reduces_rows(); }
};

struct BodyResult {
  int value = 0;
  DType dtype = DType::kF32;
};

struct GroupBody {
  const OpDef* kind = nullptr;  // flat, row or column
  int64_t rows = 1, cols = 1;
  std::vector<DType> arguments;
  std::vector<BodyValue> values;  // every one after its operands
  std::vector<BodyResult> results;

  int64_t size() const { return rows * cols; }
  bool is_full(const BodyValue& v) const { return (rows == 1 || v.along_rows) && (cols == 1 || v.along_cols); }
  /// Bytes of the narrowest type among the full arguments and results; 4 where there is none.
  int64_t narrowest_bytes() const;
};

/// Of a flat, row or column group; throws InternalError for other nodes.
GroupBody read_group(const Node& group);

/// The values that `targets` need, in order; a value of which stop() says so is taken as it is.
template <typename Stop>
std::vector<int> needed_for(const GroupBody& body, const std::vector<int>& targets, const Stop& stop) {
  std::vector<bool> needed(body.values.size());
  for (int target : targets) needed[size_t(target)] = true;
  for (size_t v = body.values.size(); v-- > 0;)
    if (needed[v] && !stop(int(v)))
      for (int operand : body.values[v].operands) needed[size_t(operand)] = true;
  std::vector<int> values;
  for (size_t v = 0; v < needed.size(); ++v)
    if (needed[v]) values.push_back(int(v));
  return values;
}

}  // namespace tokamak::cuda
