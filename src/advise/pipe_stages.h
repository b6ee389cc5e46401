// What the stages of a pipeline have and when they are done, in closed form: as compile/pipe_compiler.cpp divides
// blocks, and plan/pipe_schedule.h orders micro-batches. Tests: tests/advise/pipe_stages_test.cpp.
#pragma once

#include "config/config.h"
#include "plan/pipe_timeline.h"

#include <cstdint>
#include <vector>

namespace tokamak {

/// Seconds of a block, and of what the first and the last one have beside.
struct BlockSeconds {
  double block = 0, embedding = 0, head = 0;
};

/// Of each chunk, so that the slowest takes least. Where blocks cannot be divided evenly, later chunks have more.
std::vector<int64_t> blocks_of_chunks(int64_t blocks, int64_t chunks, const BlockSeconds& seconds);

/// For each chunk of a stage, the most micro-batches at a time of which it has what its backward pass reads.
std::vector<int64_t> micro_batches_in_flight(const MeshConfig& mesh, int64_t micro_batches, int64_t stage);

/// Seconds of the micro-batches of a step, as simulate_pipe (plan/pipe_timeline.h) has them: of a few, and of the
/// others what one more takes then.
double pipe_seconds(const MeshConfig& mesh, int64_t micro_batches, const std::vector<ChunkSeconds>& chunks,
                    double transfer);

/// No more than that, at once: what each stage does, and the first and the last micro-batch's way to it and back.
double least_pipe_seconds(const MeshConfig& mesh, int64_t micro_batches, const std::vector<ChunkSeconds>& chunks);

}  // namespace tokamak
