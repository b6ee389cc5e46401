// Device code for ops that only move elements: each is a copy between two strided layouts.
#pragma once

#include "backend/cuda/kernel_compiler.h"
#include "graph/graph.h"

namespace tokamak::cuda {

/// One loop of a copy; strides in elements.
struct CopyDim {
  int64_t size, from_stride, to_stride;
};

/// For every index of all dims: to[to_offset + ...] = from[from_offset + ...]. Offsets and strides are in elements of
/// `element_bytes` (1, 2 or 4).
struct StridedCopy {
  int64_t element_bytes = 4;
  int64_t from_offset = 0, to_offset = 0;
  std::vector<CopyDim> dims;  // the last varies fastest in the output
  /// Only indices of the last dim in [inside_begin, inside_end) are read, the others are zero.
  int64_t inside_begin = 0, inside_end = INT64_MAX;
};

/// What one transpose, slice or pad node copies.
StridedCopy transpose_copy(const Graph& graph, const Node& node);
StridedCopy slice_copy(const Graph& graph, const Node& node);
StridedCopy pad_copy(const Graph& graph, const Node& node);
/// Of one input of a concat; `at` counts indices of the dim before it.
StridedCopy concat_copy(const Graph& graph, const Node& node, size_t input, int64_t at);

/// The same copy with dims of size 1 left out and dims that run on into each other made one.
StridedCopy merge_dims(StridedCopy copy);

/// A kernel's text and how it is launched, with arguments (const Unit* from, Unit* to) of any pointer type.
struct CopyKernel {
  std::string name;
  std::string source;
  LaunchShape shape;
};

/// Through shared memory where input and output run along different dims, in units of 16 bytes (`transpose_wide`) or of
/// one element (`transpose`); else in units of up to 16 bytes.
CopyKernel make_copy_kernel(const StridedCopy& copy);

}  // namespace tokamak::cuda
