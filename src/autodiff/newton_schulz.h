// The orthogonal matrix next to a given one, nearly, by products alone. Tests: tests/autodiff/newton_schulz_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

/// Of each of `matrices`, f32 (k, n, m), = U S V^T about U V^T: five steps of x = a x + b (x x^T) x + c (x x^T)^2 x
/// from the matrix divided by its Frobenius norm, with Jordan's coefficients, after which singular values are 0.7
/// to 1.2. Their sides are the smaller ones. The products have the precision of the run's others.
ValueId orthogonalized(GraphBuilder& g, ValueId matrices);

}  // namespace tokamak
