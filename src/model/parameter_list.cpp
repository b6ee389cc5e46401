#include "model/parameter_list.h"

#include "base/error.h"
#include "config/model_config.h"
#include "ops/attention.h"

#include <cmath>

namespace tokamak {

double residual_init_std(const ModelConfig& model) { return kInitStd / std::sqrt(2.0 * double(model.layers)); }

void ParameterList::matrix(std::string name, Role role, int64_t rows, int64_t cols, double std, int64_t blocks,
                           int64_t unit) {
  list_.push_back({std::move(name), {rows, cols}, std, 0, role, blocks, false, unit});
}

void ParameterList::vector(std::string name, int64_t size, double value, Role role, int64_t blocks, int64_t unit) {
  list_.push_back({std::move(name), {size}, 0, value, role, blocks, false, unit});
}

void ParameterList::outputs_apart(const std::string& name, int64_t in, int64_t out, int64_t unit) {
  list_.push_back({name + ".weight", {out, in}, kInitStd, 0, Role::kColumn, 1, true, unit});
}

void ParameterList::adds_parts(const std::string& name, int64_t in, int64_t out, double std, int64_t unit) {
  list_.push_back({name + ".weight", {out, in}, std, 0, Role::kRow, 1, true, unit});
}

void require_even_heads(const ModelConfig& model) {
  if (model.width_of_head() % 2 != 0)
    user_error(
        "[model.head_width] expected an even width of a head for rotary positions, got {}; change "
        "model.head_width, or model.width / model.heads",
        model.width_of_head());
}

FlopsPerToken flops_of(const std::vector<ParameterInfo>& parameters, const ModelConfig& model, int64_t attention_width,
                       const std::vector<int64_t>& windows) {
  int64_t counted = 0;
  for (const ParameterInfo& info : parameters) {
    bool looked_up = info.role == Role::kPosition || info.role == Role::kValueTable ||
                     (info.role == Role::kEmbedding && !model.tie_weights);
    if (!looked_up) counted += num_elements(info.shape);
  }
  auto context = double(model.context);
  double seen = 0;  // of the others by a token, on average, in all layers
  for (int64_t window : windows) seen += causal_keys(context, window);
  double of_a_pair = 12 * double(attention_width), all = double(windows.size()) * context;
  return {counted, 6.0 * double(counted) + of_a_pair * all, 6.0 * double(counted) + of_a_pair * seen};
}

}  // namespace tokamak
