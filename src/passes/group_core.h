// What form_groups and fuse work on: a group's body without its edges. Every value is known by whether it varies along
// the rows and along the columns of the iteration space, so that shapes are written down only when the body is made.
#pragma once

#include "graph/op_def.h"
#include "ops/group.h"
#include "ops/group_form.h"

#include <optional>

namespace tokamak {

struct CoreValue {
  const OpDef* op = nullptr;  // null: an input of the group
  Attrs attrs;                // of generators without the shape, of reductions without dims and keep
  std::vector<int> operands;  // indices of earlier values
  DType dtype = DType::kF32;
  bool along_rows = false, along_cols = false;
  ValueId outer = kNoValue;  // of an input: the value of the surrounding graph
  bool raw = false;          // of an input: read as it is (rng)
};

struct CoreResult {
  int value = 0;             // index into values
  ValueId outer = kNoValue;  // the value of the surrounding graph that it defines
  ValueType type;            // its type there
};

struct GroupCore {
  const OpDef* kind = nullptr;  // flat, row or column
  int64_t rows = 1, cols = 1;
  std::vector<CoreValue> values;
  std::vector<CoreResult> results;

  int64_t size(const CoreValue& v) const { return (v.along_rows ? rows : 1) * (v.along_cols ? cols : 1); }
  bool is_full(const CoreValue& v) const { return size(v) == rows * cols; }
  int num_nodes() const;
  /// Distinct outer inputs, in order of first appearance.
  std::vector<ValueId> inputs() const;
  /// Index of an equal value when there is one, else appends it.
  int add(CoreValue value);
  /// Drops what no result depends on.
  void prune();
};

/// Whether a reduction sums over dim 0: all of a column group do, and in a row group those that vary along the columns.
inline bool sums_rows(const GroupCore& core, const CoreValue& reduction) {
  return core.kind == &op::column || (core.kind == &op::row && reduction.along_cols);
}

/// The node as a core when it fits a template; composites are decomposed. `wanted[i]`: output i is read by somebody.
std::optional<GroupCore> core_of_node(const Graph& graph, const Node& node, const std::vector<bool>& wanted);

/// Inverse of make_body, for a flat, row or column group.
GroupCore core_of_group(const Graph& graph, const Node& group);

/// The same computation over another matrix: every value that had as many elements as the old space varies along the
/// given sides of the new one. Nothing when a value does not allow it.
std::optional<GroupCore> respace(const GroupCore& core, int64_t rows, int64_t cols, bool along_rows, bool along_cols);

/// The body of the group; argument i stands for core.inputs()[i], whose types are given.
std::shared_ptr<const Graph> make_body(const GroupCore& core, const std::vector<ValueType>& input_types);

}  // namespace tokamak
