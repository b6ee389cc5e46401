#include "advise/flops.h"

namespace tokamak {

double step_flops(const ModelConfig& model, int64_t sequences, bool recomputes) {
  auto B = double(sequences), s = double(model.context), l = double(model.layers), h = double(model.width);
  auto V = double(model.vocab);
  double passes = recomputes ? 4 : 3;  // forward, again, and backward twice
  double blocks = 24 * passes * B * s * l * h * h * (1 + s / (6 * h));
  return blocks + 6 * B * s * h * V;
}

double training_seconds(double tokens, double parameters, double gpus, double flops_per_second) {
  return 8 * tokens * parameters / (gpus * flops_per_second);
}

}  // namespace tokamak
