// Ops whose elements depend on their index alone: constant, iota and counter-based random numbers.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef constant, iota, random_uniform;
}  // namespace op

/// The attribute that tells the random tensors of one step apart. As text it stays `stream`: keys of kernels in files
/// of runs and caches have it.
inline constexpr const char* kRandomStream = "stream";

ValueId constant(GraphBuilder& g, double value, Shape shape = {}, DType dtype = DType::kF32);
ValueId iota(GraphBuilder& g, Shape shape, int64_t dim, int64_t period = 0);  // f32 index along dim, modulo the period
/// Uniform multiples of 2^-15 in [0, 1), for dropout; rng is i32[2] = (seed, step); `random_stream` tells
/// tensors of one step apart. As a node it may have the attributes `matrix` and `place`: ops/uniform_numbers.h.
ValueId random_uniform(GraphBuilder& g, ValueId rng, Shape shape, int64_t random_stream);

}  // namespace tokamak
