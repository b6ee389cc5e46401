// How many optimizer steps a run takes, however its length was said. Tests: tests/run/train_length_test.cpp.
#pragma once

#include "config/config.h"

namespace tokamak {

/// The run with its length in train.steps alone, where the training data has so many windows: the fewest steps that
/// take train.epochs times as many samples, or see train.tokens. UserError where those are more than a run has.
RunConfig with_steps(RunConfig config, int64_t windows);

}  // namespace tokamak
