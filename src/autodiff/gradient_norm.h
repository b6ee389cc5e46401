// The norm of all gradients with the same bits wherever they are and however they are cut: over ranks that share a
// gradient, and over the stages of a pipeline. Tests: tests/autodiff/slots_test.cpp, tests/mesh/slots_test.cpp.
#pragma once

#include "graph/builder.h"
#include "graph/mesh.h"

#include <map>

namespace tokamak {

/// Into how many equal pieces of dim 0 the squares of gradients are added for their norm: the sums of pieces, and those
/// of all pieces in order, have the same bits however a gradient is cut over ranks between pieces.
struct NormPieces {
  int64_t most = 0;    // times `others`, where that divides dim 0; a power of two. 0: no pieces
  int64_t others = 1;  // ranks that may cut dim 0 besides

  int64_t of(int64_t dim) const;
};

/// f32[]: the sum of squares of the gradients of all parameters of `model`, in an order that follows from these alone.
/// `grads`: by the parameter's name, those that are here. The others are on other ranks of axis `stages`, each on one.
ValueId sum_squares_in_order(GraphBuilder& g, const Graph& model, const std::map<std::string, ValueId>& grads,
                             const NormPieces& pieces, const MeshAxis& stages);

}  // namespace tokamak
