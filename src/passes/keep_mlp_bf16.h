// keep_mlp_bf16: with compile.precision=fp8, products that read GELU or its gradient say that their result is bf16, and
// so float8_products leaves them, weights' gradients among them, as they are: what eight bits there cost in loss was
// not measured. Skipped (compile.disable_passes), a step of GPT-2 124M was 1.08 times as fast. Exact. Tests:
// tests/passes/float8_products_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool keep_mlp_bf16(Graph& graph, const PassContext& context);

}  // namespace tokamak
