#include "run/train_length.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr int64_t kMostSteps = int64_t(1) << 38;  // that checkpoints and metrics count

int64_t divide_up(int64_t n, int64_t by) { return n / by + (n % by > 0 ? 1 : 0); }

int64_t few_enough(double steps, const char* key, double value) {
  if (steps > double(kMostSteps))
    user_error("[{}] expected at most {} steps, got {:g}, which are {:g}; lower it", key, kMostSteps, value, steps);
  return int64_t(steps);
}

}  // namespace

RunConfig with_steps(RunConfig config, int64_t windows) {
  TrainConfig& train = config.train;
  int64_t tokens = std::max(config.step_tokens(), config.model.context);
  if (train.epochs > 0) {
    double samples = std::ceil(train.epochs * double(windows));
    train.steps = few_enough(std::ceil(samples / double(tokens / config.model.context)), "train.epochs", train.epochs);
  } else if (train.tokens > 0) {
    train.steps = few_enough(double(divide_up(train.tokens, tokens)), "train.tokens", double(train.tokens));
  }
  train.epochs = 0;
  train.tokens = 0;
  return config;
}

}  // namespace tokamak
