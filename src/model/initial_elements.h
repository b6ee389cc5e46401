// Some of a parameter's initial values, without the others: a rank draws what it has. Tests:
// tests/model/model_test.cpp.
#pragma once

#include "model/model.h"

#include <cstdint>
#include <span>

namespace tokamak {

/// What init_parameter gives for the elements from `begin` on.
void init_elements(const ParameterInfo& info, int64_t index, int64_t seed, int64_t begin, std::span<float> values);

}  // namespace tokamak
