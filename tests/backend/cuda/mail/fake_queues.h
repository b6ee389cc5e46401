// Queues of all ranks' GPUs in one process, which run what was asked for in any order that streams, events and waits
// allow, one small piece after the other: what the mailbox relies on beyond that goes wrong here. What it calls of CUDA
// is defined in fake_queues.cpp.
#pragma once

#include "base/store_client.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <random>

namespace tokamak::test {

/// The calling thread acts for this rank from now on; ranks are processes of their own.
void act_as_rank(int rank);
/// Runs all that was asked for; false: all that is left waits for something else.
bool run_queues(std::mt19937& random);
/// Asked for on a queue: `to[0 .. bytes) = value`.
void fill(cudaStream_t queue, void* to, int value, int64_t bytes);
/// Forgets all queues.
void forget_queues();

}  // namespace tokamak::test
