// Device code of embedding and embedding_grad for one node; tests compile it without a GPU.
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak::cuda {

struct EmbeddingSize {
  int64_t ids = 0, rows = 0, cols = 0;
};
EmbeddingSize embedding_size(const Graph& graph, const Node& node);

/// The function `embedding`.
std::string embedding_source(const Graph& graph, const Node& node);

/// The functions `count_digits`, `scan_counts` and `place_by_digit`.
std::string radix_sort_source(int64_t count, int64_t rows);

/// How embedding_grad's threads share the columns.
struct ColumnSplit {
  int vector = 1;    // columns of a thread
  int threads = 32;  // of a block of sum_rows
};
ColumnSplit split_columns(const Graph& graph, const Node& node);

/// The functions `sum_rows` and `combine_runs`.
std::string embedding_grad_source(const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
