#include "ops/interpret.h"

#include "base/error.h"
#include "graph/node_error.h"
#include "graph/op_def.h"
#include "ops/float8.h"
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

// One rank's values.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const std::vector<HostTensor>& arguments)
      : graph_(graph), owned_(size_t(graph.num_values())), values_(size_t(graph.num_values()), nullptr) {
    if (arguments.size() != graph.arguments().size())
      user_error("[interpret] expected {} arguments, got {}", graph.arguments().size(), arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      ValueId value = graph.arguments()[i].value;
      if (arguments[i].type != graph.type(value))
        user_error("[interpret] expected argument '{}' to be {}, got {}", graph.arguments()[i].name,
                   to_string(graph.type(value)), to_string(arguments[i].type));
      values_[size_t(value)] = &arguments[i];
    }
  }

  const HostTensor* value(ValueId value) const { return values_[size_t(value)]; }

  void run(const Node& node) {
    std::vector<const HostTensor*> inputs;
    std::vector<HostTensor> outputs;
    for (ValueId input : node.inputs) inputs.push_back(value(input));
    for (ValueId output : node.outputs) outputs.emplace_back(graph_.type(output));
    node.op->reference(node, inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) set(node.outputs[i], std::move(outputs[i]));
  }

  void set(ValueId value, HostTensor tensor) {
    if (DType dtype = tensor.type.dtype; is_rounded(dtype))
      for (double& v : tensor.data) v = round_to(dtype, v);
    owned_[size_t(value)] = std::move(tensor);
    values_[size_t(value)] = &owned_[size_t(value)];
  }

  Interpretation finish() const {
    Interpretation out;
    for (const Result& result : graph_.results()) out.results.push_back(*value(result.value));
    for (const Update& update : graph_.updates()) out.updates.push_back(*value(update.value));
    return out;
  }

 private:
  const Graph& graph_;
  std::vector<HostTensor> owned_;
  std::vector<const HostTensor*> values_;
};

// Runs a node in which the ranks of each group along its axis take part.
void run_together(const Graph& graph, const Node& node, const Mesh& mesh, std::vector<Interpreter>& ranks) {
  const std::string& axis = node.attrs.get_string("axis");
  if (mesh.size(axis) != node.attrs.get_int("size"))
    user_error("[interpret_ranks] expected axis {} of {} ranks, got {} (in {})", axis, node.attrs.get_int("size"),
               mesh.size(axis), describe(node));
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    std::vector<int64_t> group = mesh.size(axis) == 1 ? std::vector{rank} : mesh.group(rank, axis);
    if (group[0] != rank) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      std::vector<const HostTensor*> inputs;
      std::vector<HostTensor> outputs(group.size(), HostTensor(graph.type(node.outputs[i])));
      for (int64_t member : group) inputs.push_back(ranks[size_t(member)].value(node.inputs[i]));
      node.op->together(node, i, inputs, outputs);
      for (size_t m = 0; m < group.size(); ++m) ranks[size_t(group[m])].set(node.outputs[i], std::move(outputs[m]));
    }
  }
}

}  // namespace

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kBF16: return scalar::cast_bf16(value);
    case DType::kF16: return round_f16(value);
    case DType::kF8E4M3:
    case DType::kF8E5M2: return round_float8(dtype, value);
    case DType::kI32:
    case DType::kU8:
    case DType::kF32: return value;
  }
  return value;
}

Interpretation interpret(const Graph& graph, const std::vector<HostTensor>& arguments) {
  Interpreter interpreter(graph, arguments);
  for (const Node& node : graph.nodes()) interpreter.run(node);
  return interpreter.finish();
}

std::vector<Interpretation> interpret_ranks(const Graph& graph, const Mesh& mesh,
                                            const std::vector<std::vector<HostTensor>>& arguments) {
  if (int64_t(arguments.size()) != mesh.num_ranks())
    user_error("[interpret_ranks] expected arguments of {} ranks, got those of {}", mesh.num_ranks(), arguments.size());
  std::vector<Interpreter> ranks;
  for (const auto& of_rank : arguments) ranks.emplace_back(graph, of_rank);
  for (const Node& node : graph.nodes()) {
    if (node.op->together)
      run_together(graph, node, mesh, ranks);
    else
      for (Interpreter& rank : ranks) rank.run(node);
  }
  std::vector<Interpretation> out;
  for (const Interpreter& rank : ranks) out.push_back(rank.finish());
  return out;
}

}  // namespace tokamak
