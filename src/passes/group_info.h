// The form of a fused group's body, and the iteration space that a backend runs it over.
//
// A group of kind flat, row or column works on a matrix of (rows, cols). Every value of its body has the shape
// (rows, cols), (rows, 1), (1, cols) or (1, 1), with three exceptions at the edges:
//   - an argument of another shape is read by reshape nodes only, which give it one of those four shapes;
//   - a result of another shape is a reshape of such a value, and nothing else in the body reads it;
//   - the argument `rng` (i32[2]) of random_uniform is read as it is.
//
//   flat     no reduction; every result is (rows, cols)
//   row      reductions over dim 1, keep=true; results are (rows, cols) or (rows, 1). Where the backend has kernels for
//            it (a GPU), reduce_sum over dim 0 as well, keep=true, read by nothing in the body, with results (1, cols)
//   column   reductions over dim 0, keep=true, read by nothing in the body; results are those and (rows, cols)
//
// A group of kind matmul holds a matmul and its epilogue, with their own shapes; passes/fuse.h lists the forms. Tests:
// tests/passes/group_info_test.cpp
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak {

struct GroupSpace {
  std::string kind;  // flat, row or column
  Shape space;       // {rows, cols}
  int64_t rows = 1, cols = 1;
};

/// Iteration space of a flat, row or column group; InternalError when the node is not such a group in the form above.
GroupSpace group_space(const Node& group);

}  // namespace tokamak
