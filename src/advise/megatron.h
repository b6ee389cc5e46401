// Megatron-LM's weak scaling (arXiv 2104.04473, table 1) predicted from its layouts: the work of a step in closed form,
// as programs did it that had whole attention matrices, priced by a cluster's figures. Two constants are calibrated, on
// two of the ten rows. Tests: tests/advise/megatron_test.cpp.
#pragma once

#include "config/cluster_config.h"

#include <cstdint>
#include <span>

namespace tokamak {

/// What is computed again in the backward pass.
enum class Again { kBlocks, kScores, kNothing };

/// A row of the table, or a run of others with such a program.
struct MegatronRow {
  double billions = 0;  // parameters
  int64_t heads = 0, width = 0, layers = 0;
  int64_t tensor = 0, pipe = 0, gpus = 0;
  int64_t batch = 0;  // sequences of a step
  double tera = 0;    // achieved TFLOP/s of a GPU, by equation 3
  bool calibrates = false;
  int64_t context = 2048, vocab = 51200;
  int64_t micro_batch = 0, chunks = 0;  // sequences, and chunks of a stage; 0: what is fastest
  Again again = Again::kBlocks;
  bool sequence = false;  // tensor ranks divide norms and sums, too

  int64_t data() const { return gpus / (tensor * pipe); }
};

std::span<const MegatronRow> megatron_rows();

/// What a step takes, in seconds.
struct MegatronStep {
  int64_t micro_batch = 1;  // sequences
  int64_t chunks = 1;       // of a stage: the interleaved schedule's
  double matmul = 0, attention = 0, memory_bound = 0;
  double tensor = 0, pipe = 0, data = 0;  // communication of each axis, none of which is hidden
  double bubble = 0, optimizer = 0;

  double seconds() const;
  double error(const MegatronRow& row) const;  // of the predicted TFLOP/s, as a share of the measured
  double tera(const MegatronRow& row) const;   // predicted TFLOP/s of a GPU
};

/// With the micro-batch and the number of chunks that are fastest by this prediction where the row does not name them,
/// as the paper does not.
MegatronStep predict_megatron(const MegatronRow& row, const ClusterConfig& cluster);

}  // namespace tokamak
