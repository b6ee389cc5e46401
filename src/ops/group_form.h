// The form of a group over a matrix, which the verifier checks: an op `flat`, `row` or `column`.
//
// Such a group works on a matrix of (rows, cols). Every value of its body has the shape (rows, cols), (rows, 1),
// (1, cols) or (1, 1), with three exceptions at the edges:
//   - an argument of another shape is read by reshape nodes only, which give it one of those four shapes;
//   - a result of another shape is a reshape of such a value, and nothing else in the body reads it;
//   - the argument `rng` (i32[2]) of random_uniform is read as it is.
// Every argument is read.
//
//   flat     no reduction; every result is (rows, cols)
//   row      reductions over dim 1, keep=true; results are (rows, cols) or (rows, 1). Where the backend has kernels for
//            it (a GPU), reduce_sum over dim 0 as well, keep=true, read by nothing in the body, with results (1, cols)
//   column   reductions over dim 0, keep=true, read by nothing in the body; results are those and (rows, cols)
//
// The form of a fused_matmul is in ops/matmul_form.h. Tests: tests/ops/group_form_test.cpp
#pragma once

#include "graph/graph.h"

namespace tokamak {

struct GroupSpace {
  int64_t rows = 1, cols = 1;
};

/// Whether the node is a group over a matrix.
bool is_matrix_group(const Node& node);

/// The matrix of such a group; InternalError when the node is none, or not in the form above.
GroupSpace group_space(const Node& group);

}  // namespace tokamak
