// Models of any number of parameters, in the proportions of published ones. Tests: tests/scaling/model_shape_test.cpp.
#pragma once

#include "config/model_config.h"

namespace tokamak {

/// All parameters, and those of the blocks alone: Kaplan et al. count without tables of tokens and positions and
/// without the last layer.
struct ParameterCounts {
  double all = 0, of_blocks = 0;
};
ParameterCounts count_both(const ModelConfig& model);

/// `base` with layers, width and heads that make about so many parameters: 64 columns a layer up to a width of 1536, as
/// GPT-2 124M and GPT-3's smaller sizes, 128 from 3072 on, as its larger ones. Widths are multiples of 64, from 1024 on
/// of 128; heads are of 64 or, from 2048 on, 128 columns. What else fixes sizes (a preset, heads of keys, hidden units)
/// is as the family has it by itself.
ModelConfig shape_near(const ModelConfig& base, double parameters);

}  // namespace tokamak
