// How a backend's table of kernels is read. A row has the op that its kernels are of; the last row has none, and is for
// every op that no other row names.
#pragma once

#include "graph/op_def.h"
#include "ops/group.h"
#include "ops/matmul.h"

#include <span>

namespace tokamak {

/// The op by whose row a node's kernel is made: a matmul group is a matmul with an epilogue.
inline const OpDef* kernel_op(const Node& node) {
  return node.op == &op::group && node.attrs.get_string("kind") == "matmul" ? &op::matmul : node.op;
}

template <class Row>
const Row& find_kernel_row(std::span<const Row> rows, const Node& node) {
  for (const Row& row : rows.first(rows.size() - 1))
    if (row.op == kernel_op(node)) return row;
  return rows.back();
}

}  // namespace tokamak
