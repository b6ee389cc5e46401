// Device code of a flat, row or column group, as text: a pure function of the group. Equal groups give equal
// texts, so layers share compiled kernels. Tests: tests/backend/cuda/codegen_test.cpp
//
//   flat     a thread works on vectors of 16 bytes
//   row      a warp or a block works on a row, whose operands stay in registers or in shared memory between the
//            reductions, so that each is read once
//   column   blocks add up ranges of rows, then a second function adds their partial results in order
//
// All arithmetic is f32. No sum depends on anything but the group's form: the same bits on every device.
#pragma once

#include "graph/graph.h"

#include <string>
#include <vector>

namespace tokamak::cuda {

/// A function of the text and how to start it. All functions of a text have the same parameters: the group's inputs,
/// its outputs and the workspace, all of them pointers.
struct GroupLaunch {
  std::string function;
  int64_t blocks_x = 1, blocks_y = 1;
  int threads_x = 1, threads_y = 1;
  int shared_bytes = 0;  // dynamic
};

struct GroupCode {
  std::string source;
  std::vector<GroupLaunch> launches;  // in this order
  int64_t workspace_bytes = 0;
};

/// `shared_bytes`: what a block may have at most on the device.
GroupCode generate_group(const Node& group, int64_t shared_bytes = 227 << 10);

/// GroupCode::workspace_bytes without the text.
int64_t group_workspace_bytes(const Node& group, int64_t shared_bytes = 227 << 10);

}  // namespace tokamak::cuda
