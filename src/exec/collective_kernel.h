// What ranks do together in a step, as kernels: a communicator's call, and before and after it kernels of the backend
// that put the parts of ranks side by side. Tests: tests/exec/collective_kernel_test.cpp.
#pragma once

#include "backend/backend.h"
#include "exec/mesh_ranks.h"

namespace tokamak {

/// Whether a node needs the other ranks, or at least this one's place among them.
bool is_of_ranks(const Node& node);

/// The kernel of such a node on a stream of the backend. `ranks` and `backend` must outlive it.
std::unique_ptr<Kernel> make_collective_kernel(const MeshRanks& ranks, Backend& backend, int stream, const Graph& graph,
                                               const Node& node);

}  // namespace tokamak
