// mesh.chunk_layers: how many layers each chunk of a pipeline has, as a user says it. Tests:
// tests/config/validate_test.cpp.
#pragma once

#include "config/mesh_config.h"

#include <vector>

namespace tokamak {

/// Of each chunk, in order; none where mesh.chunk_layers is empty. UserError unless they are one number for each of the
/// mesh's chunks, at least 1 but for the first and the last, and `layers` together.
std::vector<int64_t> chunk_layers(const MeshConfig& mesh, int64_t layers);

/// Into how many chunks a model divides at most: the embeddings and the classifier may each be one without a layer.
constexpr int64_t most_chunks(int64_t layers) { return layers + 2; }

/// Of how many chunks mesh.chunk_layers speaks.
int64_t count_chunk_layers(const MeshConfig& mesh);

}  // namespace tokamak
