// A cluster's rates from a run that was measured on it. Tests: tests/advise/calibrate_test.cpp.
#pragma once

#include "config/cluster_config.h"
#include "config/config.h"
#include "graph/platform.h"

#include <functional>

namespace tokamak {

struct Calibration {
  double measured = 0, predicted = 0;  // seconds of a step; predicted before anything is changed
  double load_clock = 0;               // the share of its clock with which the run is predicted as it was measured
};

/// GpuConfig::load_clock of the cluster's GPU, so that a step of the run is predicted to take `measured` seconds.
/// `platform` is of a described GPU. UserError where no share that a GPU may have does so: the run was on another kind.
Calibration calibrate(const RunConfig& run, double measured, ClusterConfig cluster,
                      const std::function<Platform(const GpuConfig&)>& platform);

}  // namespace tokamak
