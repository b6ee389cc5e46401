// flash_attention: marks every attention to be kept whole, for the kernel that never stores the (T, T) matrix.
//
//   %1, %2 = attention(%0)   ->   %1, %2 = attention(%0) #keep_whole
//
// It only decides; decompose_attention obeys. Tests: tests/passes/flash_attention_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool flash_attention(Graph& graph, const PassContext& context);

}  // namespace tokamak
