// Of fuse_matmul_epilogues: groups that are a pointwise function of a value. Tests:
// tests/passes/fuse_matmul_epilogues_test.cpp
#pragma once

#include "ops/group_body.h"

namespace tokamak {

/// Who reads what in a graph.
class Readers {
 public:
  explicit Readers(const Graph& graph) : graph_(graph), users_(find_users(graph)), escaping_(find_escaping(graph)) {}

  /// The nodes that read the value.
  std::span<const int> of(ValueId value) const { return users_[size_t(value)]; }
  /// The flat group with one result that is the only reader of the value, or -1.
  int only(ValueId value) const;
  bool is_single_flat(int node) const;
  /// Whether it is a result, or what an argument is updated to.
  bool escapes(ValueId value) const { return escaping_[size_t(value)]; }

 private:
  const Graph& graph_;
  Users users_;
  std::vector<bool> escaping_;
};

/// Groups after each other that together are one pointwise function of a value `x`, or of it and a matrix of its type.
struct PointwiseFunction {
  GroupBody body;              // of input 0, x, and input 1, the matrix
  ValueId operand = kNoValue;  // the matrix, if there is one
  std::vector<int> members;    // the groups
  ValueId result = kNoValue;   // of x's type
};

/// Those of `x` that the node `first` and then its only readers of the same phase are; the longest first.
std::vector<PointwiseFunction> functions_of(const Graph& graph, const Readers& readers, int first, ValueId x);

}  // namespace tokamak
