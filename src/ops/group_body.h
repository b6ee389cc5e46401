// What a flat, row or column group computes, without the shapes and edges of its body: every value is known by whether
// it varies along the rows and along the columns of the group's matrix (ops/group_form.h). Passes fuse these, backends
// make kernels of them, and the body is their text form. Tests: tests/ops/group_body_test.cpp
#pragma once

#include "graph/op_def.h"

namespace tokamak {

struct GroupValue {
  const OpDef* op = nullptr;   // null: an input
  Attrs attrs;                 // of generators without the shape, of reductions without dims and keep
  ShortList<int, 4> operands;  // indices of earlier values
  DType dtype = DType::kF32;
  bool along_rows = false, along_cols = false;
  bool over_rows = false;    // of a reduction: it reduces each column, not each row
  ValueId outer = kNoValue;  // what an input, or a random_uniform as its rng, reads from outside

  bool is(const OpDef& other) const { return op == &other; }
  bool is_input() const { return !op; }
  bool is_reduction() const { return op && op->fusion == Fusion::kReduction; }
  bool reduces_rows() const { return is_reduction() && over_rows; }
  bool reduces_cols() const { return is_reduction() && !over_rows; }
};

struct GroupResult {
  int value = 0;             // index into values
  ValueId outer = kNoValue;  // what it is outside
  ValueType type;            // its type there
};

/// `outer` is a position among a node's inputs or outputs, or a value of the graph around it: whoever makes a GroupBody
/// says which.
struct GroupBody {
  const OpDef* kind = nullptr;  // flat, row or column
  int64_t rows = 1, cols = 1;
  std::vector<GroupValue> values;
  std::vector<GroupResult> results;

  int64_t size() const { return rows * cols; }
  int64_t size(const GroupValue& v) const { return (v.along_rows ? rows : 1) * (v.along_cols ? cols : 1); }
  Shape shape(const GroupValue& v) const { return {v.along_rows ? rows : 1, v.along_cols ? cols : 1}; }
  bool is_full(const GroupValue& v) const { return size(v) == size(); }
  int num_nodes() const;
  /// What is read from outside, once each, in order of first appearance.
  ValueIds inputs() const;
  /// Index of an equal value when there is one, else appends it.
  int add(GroupValue value);
  /// Drops what no result depends on.
  void prune();
  /// The op's attributes with those that the value's shape says.
  Attrs attrs_of(const GroupValue& value) const;
};

/// Of a flat, row or column group; `outer` are positions.
GroupBody read_group(const Node& group);

/// Its inverse: the body whose argument i stands for inputs()[i], whose types are given.
std::shared_ptr<const Graph> make_body(const GroupBody& group, const ValueTypes& input_types);

}  // namespace tokamak
