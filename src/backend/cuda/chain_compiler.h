// Links of chains (backend/chained.h): products of few rows and attention to a cache, from Hopper on.
// Tests: tests/backend/cuda/chain_test.cpp
#pragma once

#include "backend/chained.h"
#include "backend/cuda/context.h"

namespace tokamak::cuda {

/// What the compiler says of a node; it needs no device.
bool can_chain(const Graph& graph, const Node& node);

/// The context must outlive it and the kernels.
std::unique_ptr<ChainCompiler> make_chain_compiler(Context& context);

}  // namespace tokamak::cuda
