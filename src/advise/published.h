// What the planner predicts of runs that others published (advise/published_runs.h). Tests:
// tests/advise/published_test.cpp.
#pragma once

#include "advise/published_runs.h"
#include "advise/training_request.h"

#include <functional>
#include <string>
#include <vector>

namespace tokamak {

struct PublishedPrediction {
  const PublishedRun* run = nullptr;
  double published = 0, predicted = 0;  // seconds of a step
  std::string layout;
  double missing_bytes = 0;  // what the layout lacks of memory; priced all the same

  double error() const { return predicted / published - 1; }
};

using GpuPlatform = std::function<Platform(const GpuConfig&)>;

/// As plan does it, with the layout that is published; what is not said of it is what the prediction finds fastest.
PublishedPrediction predict_published(const PublishedRun& run, const GpuPlatform& platform);

/// All of them, side by side.
std::vector<PublishedPrediction> predict_published(std::span<const PublishedRun> runs, const GpuPlatform& platform);

}  // namespace tokamak
