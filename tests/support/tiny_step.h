// A model and a batch so small that a step of training takes a moment.
#pragma once

#include "config/config.h"

namespace tokamak::test {

inline RunConfig tiny_step() {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 61};
  config.train.batch = 2;
  config.compile.precision = Precision::kFp32;
  return config;
}

}  // namespace tokamak::test
