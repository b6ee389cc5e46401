// Runs groups as tile programs over all cores. Which thread does what depends on sizes only, and every sum has one
// order whatever the number of threads.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/tile_program.h"

namespace tokamak::cpu {

/// `group` is a flat, row or column.
std::unique_ptr<Kernel> make_group_kernel(const Graph& graph, const Node& group);

/// Runs a flat or row program on the calling thread over tiles [begin, end) of num_tiles(program).
void run_tiles(const TileProgram& program, std::span<const void* const> inputs, std::span<void* const> outputs,
               int64_t begin, int64_t end);

/// Rows for a row program, chunks for a flat one.
int64_t num_tiles(const TileProgram& program);

}  // namespace tokamak::cpu
