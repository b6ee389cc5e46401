// A training that tests of plans ask for.
#pragma once

#include "advise/training_request.h"
#include "config/cluster.h"
#include "config/preset.h"

namespace tokamak {

inline TrainingRequest request_of(const char* model, const char* cluster, int64_t gpus) {
  TrainingRequest request;
  request.cluster = read_cluster(cluster);
  request.gpus = gpus;
  request.sequences = 256;
  request.tokens = 10e9;
  request.run.model.preset = model;
  apply_preset(request.run.model);
  return request;
}

}  // namespace tokamak
