// decompose_attention: writes every attention that is not marked #keep_whole as matmuls, mask and softmax, in naive
// form.
//
//   %1, %2 = attention(%0)   ->   slice, transpose, matmul, mul, select, softmax, matmul, transpose, reshape
//
// Runs before differentiation, so that the gradient is that of the naive form. Tests:
// tests/passes/flash_attention_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool decompose_attention(Graph& graph, const PassContext& context);

}  // namespace tokamak
