#include "run/train_length.h"

#include "base/error.h"
#include "config/train_ramp.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr int64_t kMostSteps = int64_t(1) << 38;  // that checkpoints and metrics count

int64_t few_enough(double steps, const char* key, double value) {
  if (steps > double(kMostSteps))
    user_error("[{}] expected at most {} steps, got {:g}, which are {:g}; lower it", key, kMostSteps, value, steps);
  return int64_t(steps);
}

}  // namespace

RunConfig with_steps(RunConfig config, int64_t windows) {
  TrainConfig& train = config.train;
  if (train.epochs > 0) {
    double tokens = std::ceil(train.epochs * double(windows)) * double(config.model.context);
    train.steps = few_enough(ramp_steps(config, tokens), "train.epochs", train.epochs);
  } else if (train.tokens > 0) {
    train.steps = few_enough(ramp_steps(config, double(train.tokens)), "train.tokens", double(train.tokens));
  }
  train.epochs = 0;
  train.tokens = 0;
  return config;
}

}  // namespace tokamak
