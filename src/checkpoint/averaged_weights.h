// The mean of the weights over steps that optimizer.ema keeps, as a checkpoint's model.
// Tests: tests/checkpoint/averaged_weights_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"

#include <string_view>
#include <vector>

namespace tokamak {

/// What a user may ask for: "last", the weights themselves, and "ema".
inline constexpr const char *kLastWeights = "last", *kAveragedWeights = "ema";

/// The checkpoint with these weights as its model. UserError when it has no mean of them.
FoundCheckpoint with_weights(FoundCheckpoint checkpoint, std::string_view weights);

}  // namespace tokamak
