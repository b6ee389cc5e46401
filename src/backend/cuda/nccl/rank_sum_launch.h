// Sums of what ranks have brought, added by one kernel.
#pragma once

#include "backend/cuda/kernel_compiler.h"
#include "graph/type.h"

#include <span>
#include <vector>

namespace tokamak::cuda {

/// to[i] = pieces[0][i] + pieces[1][i] + ... for `count` elements; `to` may be one of the pieces.
struct PieceSum {
  std::vector<const void*> pieces;
  void* to;
  int64_t count;
};

/// `source` is rank_sum_source's or tree_sum_source's for as many pieces as each sum has.
void add_pieces(KernelCompiler& compiler, const std::string& source, DType dtype, std::span<const PieceSum> sums,
                cudaStream_t queue);

}  // namespace tokamak::cuda
