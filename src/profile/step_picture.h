// One step of a profile as pictures show it: what ran on which stream when, and what lay where in the arena.
// Tests: tests/profile/step_picture_test.cpp.
#pragma once

#include "plan/product_names.h"
#include "profile/profiler.h"
#include "profile/timeline_lane.h"

#include <string>
#include <vector>

namespace tokamak {

/// The last step; times in seconds from its begin. A lane for each stream.
struct StepTimeline {
  double seconds = 0;
  std::vector<std::string> streams;  // name of each lane
  std::vector<TimelineLane> lanes;   // bars have the name of their WorkClass as kind
};

/// A piece of the arena for as long as it is taken.
struct MemoryBlock {
  std::string label;
  double begin = 0, end = 0;  // seconds from the run's begin
  int64_t offset = 0, bytes = 0;
  bool at_peak = false;  // taken when most is
};

/// The last run of a program.
struct MemoryPicture {
  std::string program;
  double seconds = 0;
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;   // that are taken at a time, at most
  double peak_seconds = 0;  // when that is first so
  std::string peak_kernel;  // what runs then
  std::vector<MemoryBlock> blocks;
};

/// " mlp.c_fc wgrad" of a matmul whose parameter is known, to stand behind its name; else empty.
std::string product_of(const ProductFinder& finder, const Node& node);

StepTimeline step_timeline(const StepProfile& profile);
MemoryPicture memory_picture(const Plan& plan, const StepProfile& profile);

}  // namespace tokamak
