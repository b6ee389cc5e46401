// One way to divide a training over GPUs, and all that a model and a number of GPUs allow.
// Tests: tests/advise/layout_test.cpp.
#pragma once

#include "config/config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct ParallelLayout {
  MeshConfig mesh;            // with data said
  int64_t micro_batch = 1;    // sequences of a data rank
  int64_t micro_batches = 1;  // of a step
  double budget_gib = 0;      // what intermediate values may take; 0: nothing is computed again

  int64_t gpus() const { return mesh.pipe * mesh.data * mesh.context * mesh.tensor; }
};

/// "data 4, ZeRO 3, micro-batch 8 x 2", with "recomputes" where it does.
std::string describe(const ParallelLayout& layout);

/// The run that is divided so.
RunConfig run_of(const RunConfig& config, const ParallelLayout& layout);

/// The same on a command line.
std::string options_of(const ParallelLayout& layout, int64_t context);

/// mesh.schedule and mesh.interleave.
struct ScheduleChoice {
  std::string schedule;
  int64_t interleave = 1;
  bool or_more_chunks = false;  // search_layouts() looks whether more of them are faster
};

/// Those worth a try; gpipe takes as long as 1f1b and more memory.
std::vector<ScheduleChoice> usual_schedules();

/// Every mesh, ZeRO stage, micro-batch and one of the schedules with which `gpus` train steps of `sequences`, without
/// regard to memory. Tensor ranks are of one node. What else the run says of its mesh holds for all. Where its buckets
/// are the usual ones, those of ZeRO 3 are large enough for a block's largest matrix.
std::vector<ParallelLayout> all_layouts(const RunConfig& run, int64_t gpus, int64_t gpus_per_node, int64_t sequences,
                                        const std::vector<ScheduleChoice>& schedules = usual_schedules());

}  // namespace tokamak
