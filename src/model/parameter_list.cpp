#include "model/parameter_list.h"

#include "config/model_config.h"
#include "ops/attention.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

double residual_init_std(const ModelConfig& model) { return kInitStd / std::sqrt(2.0 * double(model.layers)); }

void ParameterList::matrix(std::string name, Role role, int64_t rows, int64_t cols, double std, int64_t blocks,
                           bool transposed) {
  list_.push_back({std::move(name), {rows, cols}, std, 0, role, blocks, transposed});
}

void ParameterList::vector(std::string name, int64_t size, double value, Role role, int64_t blocks) {
  list_.push_back({std::move(name), {size}, 0, value, role, blocks});
}

void ParameterList::outputs_apart(const std::string& name, int64_t in, int64_t out) {
  matrix(name + ".weight", Role::kColumn, out, in, kInitStd, 1, true);
}

void ParameterList::adds_parts(const std::string& name, int64_t in, int64_t out, double std) {
  matrix(name + ".weight", Role::kRow, out, in, std, 1, true);
}

FlopsPerToken flops_of(const std::vector<ParameterInfo>& parameters, const ModelConfig& model, int64_t attention_width,
                       int64_t window) {
  int64_t counted = 0;
  for (const ParameterInfo& info : parameters) {
    bool looked_up = info.role == Role::kPosition || (info.role == Role::kEmbedding && !model.tie_weights);
    if (!looked_up) counted += num_elements(info.shape);
  }
  auto context = double(model.context);
  double of_a_pair = 12 * double(model.layers) * double(attention_width);
  double seen = causal_keys(context, window);
  return {counted, 6.0 * double(counted) + of_a_pair * context, 6.0 * double(counted) + of_a_pair * seen};
}

}  // namespace tokamak
