// The reference interpreter: runs any graph with the ops' reference kernels, in double precision. It is the truth for
// backends, for passes and (by finite differences) for gradients.
#pragma once

#include "graph/graph.h"
#include "graph/host_tensor.h"
#include "graph/mesh.h"

namespace tokamak {

struct Interpretation {
  std::vector<HostTensor> results;  // as graph.results()
  std::vector<HostTensor> updates;  // as graph.updates()
};

/// `arguments` as graph.arguments(); throws UserError when their number or types differ. Values of dtype bf16 and f16
/// are rounded to their type, f32 stays in double.
Interpretation interpret(const Graph& graph, const std::vector<HostTensor>& arguments);

/// The truth for many ranks: runs the graph on all ranks of the mesh in lockstep, `arguments` and what comes back being
/// by rank. A node with `together` gets the inputs of all ranks along its axis; its size must be the mesh's.
std::vector<Interpretation> interpret_ranks(const Graph& graph, const Mesh& mesh,
                                            const std::vector<std::vector<HostTensor>>& arguments);

/// Rounds to what the dtype can hold (bf16, f16); f32 and i32 are left alone.
double round_to(DType dtype, double value);

}  // namespace tokamak
