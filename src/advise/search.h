// The layouts that train a model on a cluster, the fastest first. Tests: tests/advise/search_test.cpp.
#pragma once

#include "advise/estimate.h"
#include "advise/training_request.h"

#include <string>
#include <vector>

namespace tokamak {

/// The fastest micro-batch of each mesh that fits, fastest first. Empty where none does.
std::vector<Estimate> search_layouts(const TrainingRequest& request);

/// Of all that are allowed the one that needs least memory, whether it fits or not; UserError when the model allows
/// none on so many GPUs.
Estimate smallest_layout(const TrainingRequest& request);

/// All that are allowed, whether they fit or not.
std::vector<ParallelLayout> allowed_layouts(const TrainingRequest& request);

bool fits(const Estimate& estimate, const ClusterConfig& cluster);

/// Of one layout, with the request's blocks; `most` as in advise/estimate.h.
Estimate estimate(const TrainingRequest& request, const ParallelLayout& layout,
                  double most = std::numeric_limits<double>::infinity());

}  // namespace tokamak
