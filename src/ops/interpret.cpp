#include "ops/interpret.h"

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/scalar_math.h"

#include <cmath>

namespace tokamak {
namespace {

// 11 significant bits, subnormals below 2^-14, infinity above 65504; ties to even through the default rounding mode.
double round_f16(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = std::max(std::ilogb(value), -14);
  double unit = std::ldexp(1.0, exponent - 10);
  double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) > 65504 ? std::copysign(HUGE_VAL, value) : rounded;
}

}  // namespace

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kBF16: return scalar::cast_bf16(value);
    case DType::kF16: return round_f16(value);
    case DType::kI32:
    case DType::kF32: return value;
  }
  return value;
}

Interpretation interpret(const Graph& graph, const std::vector<HostTensor>& arguments) {
  if (arguments.size() != graph.arguments().size())
    user_error("[interpret] expected {} arguments, got {}", graph.arguments().size(), arguments.size());
  std::vector<HostTensor> owned(size_t(graph.num_values()));
  std::vector<const HostTensor*> values(size_t(graph.num_values()), nullptr);
  for (size_t i = 0; i < arguments.size(); ++i) {
    ValueId value = graph.arguments()[i].value;
    if (arguments[i].type != graph.type(value))
      user_error("[interpret] expected argument '{}' to be {}, got {}", graph.arguments()[i].name,
                 to_string(graph.type(value)), to_string(arguments[i].type));
    values[size_t(value)] = &arguments[i];
  }
  for (const Node& node : graph.nodes()) {
    std::vector<const HostTensor*> inputs;
    std::vector<HostTensor> outputs;
    for (ValueId input : node.inputs) inputs.push_back(values[size_t(input)]);
    for (ValueId output : node.outputs) outputs.emplace_back(graph.type(output));
    node.op->reference(node, inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto at = size_t(node.outputs[i]);
      if (DType dtype = outputs[i].type.dtype; dtype == DType::kBF16 || dtype == DType::kF16)
        for (double& v : outputs[i].data) v = round_to(dtype, v);
      owned[at] = std::move(outputs[i]);
      values[at] = &owned[at];
    }
  }
  Interpretation out;
  for (const Result& result : graph.results()) out.results.push_back(*values[size_t(result.value)]);
  for (const Update& update : graph.updates()) out.updates.push_back(*values[size_t(update.value)]);
  return out;
}

}  // namespace tokamak
