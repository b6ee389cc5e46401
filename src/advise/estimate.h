// Memory and time of a layout in closed form: what the compiler would plan, without compiling anything. It follows what
// the passes do (flash attention, fused norms and epilogues, a classifier in chunks, ZeRO's collectives); how far it is
// from compiled steps is held by tests/advise/estimate_test.cpp.
#pragma once

#include "advise/layout.h"
#include "config/cluster_config.h"
#include "graph/target.h"

#include <limits>

namespace tokamak {

/// Bytes of the fullest GPU.
struct MemoryByKind {
  double weights = 0;    // in f32, and where they are kept for the step, in bf16
  double gradients = 0;  // that outlive a micro-batch
  double optimizer = 0;
  double activations = 0;  // what the backward pass reads
  double buffers = 0;      // what is there for a moment: logits of a chunk, gathered parameters, scratch

  double total() const { return weights + gradients + optimizer + activations + buffers; }
};

/// Seconds of a step. Their sum is its time.
struct TimeByKind {
  double matmul = 0, attention = 0, memory_bound = 0;
  double recomputed = 0;                               // forward work that is done again
  double data = 0, context = 0, tensor = 0, pipe = 0;  // communication while nothing else runs
  double bubble = 0;

  double communication() const { return data + context + tensor + pipe; }
  double total() const { return matmul + attention + memory_bound + recomputed + communication() + bubble; }
};

/// Of a GPU's memory, what a layout can take: of several GPUs all but what NCCL has for itself, which was up to 1 GiB
/// of each of two H200s (bench/results/2026-11-23-h200-x2-meshes.txt).
double usable_bytes(const ClusterConfig& cluster, const MeshConfig& mesh);

struct Estimate {
  ParallelLayout layout;
  MemoryByKind memory;
  TimeByKind time;
};

/// What a layout takes on a cluster's GPUs. Where it is too much, as much is computed again as makes it fit, and the
/// layout's budget is set; where even that is not enough, memory.total() is still more than there is. Whoever looks for
/// a step of `most_seconds` is not told the time of a layout that does not fit, nor how long a pipeline waits whose
/// step is known to take more without: that takes longest to find.
Estimate estimate(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster,
                  double most_seconds = std::numeric_limits<double>::infinity());

/// No block's passes over a micro-batch take less: kernels, and what tensor and context ranks send while none runs. It
/// goes by these axes and the micro-batch alone.
double least_block_seconds(const ModelConfig& model, const ParallelLayout& layout, const ClusterConfig& cluster);

}  // namespace tokamak
