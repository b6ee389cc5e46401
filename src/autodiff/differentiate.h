// Reverse-mode differentiation of a graph, as ordinary nodes of the same graph. Tests: tests/autodiff, tests/ops.
#pragma once

#include "graph/builder.h"

namespace tokamak {

/// Appends, in the backward phase, the nodes that compute the gradient of the scalar f32 `loss` with respect to each of
/// `wrt`; kNoValue where the loss does not depend on it. Throws UserError naming an op on the way that has no gradient.
ValueIds differentiate(GraphBuilder& builder, ValueId loss, std::span<const ValueId> wrt);

/// The same with respect to arguments, of each of which every node that reads it gives a gradient by itself: the last
/// one first.
std::vector<ValueIds> differentiate_by_use(GraphBuilder& builder, ValueId loss, std::span<const ValueId> wrt);

/// The same for a loss that depends on `wrt` by way of `output` alone, whose gradient, of its type, is given.
ValueIds differentiate(GraphBuilder& builder, ValueId output, ValueId gradient, std::span<const ValueId> wrt);

}  // namespace tokamak
