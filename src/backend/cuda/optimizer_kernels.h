// Device code of the optimizer's kernels; tests compile it without a GPU.
#pragma once

#include "graph/attrs.h"
#include "graph/type.h"

#include <string>

namespace tokamak::cuda {

/// The functions `sum_pieces` and `sum_partials`.
std::string sum_squares_source();

/// The function `multi_adamw` with the node's beta1, beta2, eps and decay, of states in f32 or bf16.
std::string multi_adamw_source(const Attrs& attrs, DType state);

}  // namespace tokamak::cuda
