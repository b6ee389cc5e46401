#include "backend/cuda/codegen/function.h"

#include "backend/cuda/codegen/expression.h"
#include "ops/generate.h"

namespace tokamak::cuda {

std::string function_source(const GroupBody& function) {
  Expression expression(function);
  std::string parameters[2] = {"float", "float"};
  for (size_t v = 0; v < function.values.size(); ++v)
    if (const GroupValue& value = function.values[v]; value.is_input())
      parameters[value.outer] = "float " + expression.name(int(v));
  Text text;
  text.open("__device__ inline float finish({}, {})", parameters[0], parameters[1]);
  int result = function.results[0].value;
  for (int v = 0; v < result; ++v)
    if (const GroupValue& value = function.values[size_t(v)]; !value.is_input() && !value.is(op::constant))
      text.line("{}", expression.statement(v));
  text.line("return {};", expression.unrounded(result));
  text.close();
  return text.str();
}

}  // namespace tokamak::cuda
