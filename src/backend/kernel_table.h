// How a backend's table of kernels is read. A row has the op that its kernels are of; the last row has none, and is for
// every op that no other row names.
#pragma once

#include "graph/graph.h"

#include <span>

namespace tokamak {

template <class Row>
const Row& find_kernel_row(std::span<const Row> rows, const Node& node) {
  for (const Row& row : rows.first(rows.size() - 1))
    if (row.op == node.op) return row;
  return rows.back();
}

}  // namespace tokamak
