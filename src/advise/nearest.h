// Where a training fits that does not fit as it was asked for. Tests: tests/advise/nearest_test.cpp.
#pragma once

#include "advise/search.h"

#include <optional>
#include <string>

namespace tokamak {

struct Nearest {
  Estimate layout;
  int64_t gpus = 1;
  std::string cluster;  // the name it is asked for by; empty: the request's own
};

/// The fastest of any layout on the request's GPUs, else on twice as many and so on as far as the cluster goes, else
/// the same on the known cluster that needs fewest. None where the model fits none of them.
///
/// Not one of those that are known not to fit after all, on the request's own GPUs.
std::optional<Nearest> find_nearest(const TrainingRequest& request,
                                    const std::vector<ParallelLayout>& passed_over = {});

}  // namespace tokamak
