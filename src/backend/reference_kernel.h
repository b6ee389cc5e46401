// Any op through its reference implementation, in double precision on the host: slow, for what has no kernel of its
// own.
#pragma once

#include "backend/backend.h"

namespace tokamak {

/// Its operands are in the host's memory. What is not i32 is rounded to f32 before it is stored, as by other kernels.
std::unique_ptr<Kernel> make_reference_kernel(const Graph& graph, const Node& node);

}  // namespace tokamak
