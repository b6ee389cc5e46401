// How many blocks of a model each chunk of a pipeline has. Tests: tests/compile/balance_blocks_test.cpp.
#pragma once

#include "config/mesh_config.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace tokamak {

/// What balances chunks.
struct BlockSeconds {
  std::function<std::vector<double>()> blocks;  // of each block as a chunk of its own: the first and the last with ends
  std::function<std::array<double, 2>()> ends;  // of what stands before the first one and behind the last one
};

/// The first block of each of `chunks` chunks, and behind them the number of blocks, so that the one that takes longest
/// takes as little as can be. Each has one block or more, but for the first and the last where that is faster, or where
/// there are more chunks than blocks: two more at most.
std::vector<int64_t> balance_blocks(const BlockSeconds& seconds, int64_t chunks);

/// The same as mesh.chunk_layers has it; else balanced.
std::vector<int64_t> divide_blocks(const MeshConfig& mesh, int64_t layers, const BlockSeconds& seconds);

}  // namespace tokamak
