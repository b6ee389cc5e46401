// The mesh of a run, from its configuration.
#pragma once

#include "graph/mesh.h"

namespace tokamak {

struct MeshConfig;

/// Its axes, the slowest first; tensor is the last, as its ranks send most to each other.
inline constexpr const char *kPipeAxis = "pipe", *kDataAxis = "data", *kContextAxis = "context",
                            *kTensorAxis = "tensor";

/// For a world of so many ranks: mesh.data = 0 is what the other axes leave of it. 0: of as many as the mesh has.
/// UserError when the mesh has another number of them.
Mesh step_mesh(const MeshConfig& config, int64_t world = 0);

/// Whether a step in bf16 or f16, or on a number of ranks that is no power of two, cuts parameters over data and
/// context though mesh.zero is 1 or 2, and gathers each once in that type: half the bytes of gathering f32 after the
/// update, and the forward pass hides them where a step has one micro-batch.
bool gathers_once(const MeshConfig& mesh);

}  // namespace tokamak
