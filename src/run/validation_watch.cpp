#include "run/validation_watch.h"

#include "config/train_config.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

namespace tokamak {

ValidationWatch::ValidationWatch(const TrainConfig& config, const ValLosses& before, const ValLosses& saved)
    : config_(config) {
  for (const ValLoss& loss : before) watch(loss);
  for (const ValLoss& loss : saved) keep(loss);
}

void ValidationWatch::add(const ValLoss& loss) {
  watch(loss);
  keep(loss);
}

// A loss that is no number improves on nothing.
void ValidationWatch::watch(const ValLoss& loss) {
  bool improves = !lowest_ ? std::isfinite(loss.loss) : loss.loss < lowest_->loss - config_.min_improvement;
  if (improves) lowest_ = loss;
  waited_ = improves ? 0 : waited_ + 1;
}

void ValidationWatch::keep(const ValLoss& loss) {
  if (config_.keep_best && std::isfinite(loss.loss) && (!best_ || loss.loss < best_->loss)) best_ = loss;
}

bool ValidationWatch::is_over() const { return config_.patience > 0 && waited_ >= config_.patience; }

std::string ValidationWatch::why_over() const {
  std::string than = lowest_ ? fmt::format("{:.4f}, that after step {},", lowest_->loss, lowest_->step) : "any number";
  std::string by = config_.min_improvement > 0 ? fmt::format(" by more than {:g}", config_.min_improvement) : "";
  return fmt::format(
      "ended early: the last {} validation loss{} not lower than {}{} (train.patience = {}); to go on, raise "
      "--train.patience, or set it to 0",
      waited_, waited_ == 1 ? " was" : "es were", than, by, config_.patience);
}

// Hexadecimal, which loses no bit.
std::string to_text(const ValLosses& losses) {
  std::string text;
  for (const ValLoss& loss : losses) text += fmt::format("{} {:a} ", loss.step, loss.loss);
  return text;
}

ValLosses val_losses_from_text(const std::string& text) {
  ValLosses losses;
  std::istringstream words(text);
  std::string loss;
  for (int64_t step = 0; words >> step >> loss;) losses.push_back({step, std::stod(loss)});
  return losses;
}

}  // namespace tokamak
