// The parameters of a family as it lists them: matrices, vectors, and what a token is multiplied with of them.
// Tests: tests/model/gpt_parameters_test.cpp, tests/model/llama_test.cpp.
#pragma once

#include "model/model.h"

namespace tokamak {

inline constexpr double kInitStd = 0.02;
/// Of matrices that add to the residual stream, as they do twice a layer.
double residual_init_std(const ModelConfig& model);

class ParameterList {
 public:
  void matrix(std::string name, Role role, int64_t rows, int64_t cols, double std, int64_t blocks = 1,
              int64_t unit = 1);
  void vector(std::string name, int64_t size, double value, Role role = Role::kVector, int64_t blocks = 1,
              int64_t unit = 1);
  /// Matrices that are stored (out, in), "<name>.weight": one whose outputs go on apart from each other, and one that
  /// adds such parts up; `unit` of these stay together.
  void outputs_apart(const std::string& name, int64_t in, int64_t out, int64_t unit = 1);
  void adds_parts(const std::string& name, int64_t in, int64_t out, double std, int64_t unit = 1);
  std::vector<ParameterInfo> take() { return std::move(list_); }

 private:
  std::vector<ParameterInfo> list_;
};

/// UserError for a width of a head that rotary positions cannot turn.
void require_even_heads(const ModelConfig& model);

/// Tables that are only looked up do not count: of positions, of values, and of tokens unless the last layer multiplies
/// with it. Attention's scores and values take 12 x `attention_width` for each pair of positions that see each other;
/// `windows` of each layer, as model.window.
FlopsPerToken flops_of(const std::vector<ParameterInfo>& parameters, const ModelConfig& model, int64_t attention_width,
                       const std::vector<int64_t>& windows);

}  // namespace tokamak
