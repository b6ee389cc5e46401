#include "exec/measure.h"

#include "base/random.h"
#include "graph/op_def.h"
#include "graph/single_node.h"
#include "ops/host_storage.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr int kRuns = 5;
constexpr int64_t kPatternElements = 1 << 18;

// Uniform in [-1, 1); zeros, which are valid wherever integers are, for integers.
std::vector<std::byte> random_pattern(DType dtype) {
  HostTensor tensor({dtype, {kPatternElements}});
  if (dtype != DType::kI32)
    for (int64_t i = 0; i < tensor.size(); ++i) tensor[i] = 2 * uniform_element(1, i, 0) - 1;
  return to_storage(tensor);
}

// The pattern again and again over the whole memory, doubled on the device.
std::unique_ptr<Memory> make_operand(Backend& backend, const ValueType& type) {
  int64_t bytes = num_bytes(type);
  auto memory = backend.allocate(bytes);
  std::vector<std::byte> pattern = random_pattern(type.dtype);
  auto* data = static_cast<std::byte*>(memory->data());
  int64_t filled = std::min(bytes, int64_t(pattern.size()));
  backend.copy_in(data, pattern.data(), filled);
  for (; filled < bytes; filled *= 2) backend.copy(data + filled, data, std::min(filled, bytes - filled));
  return memory;
}

bool is_library_kernel(const Node& node) {
  return node.op->autocast == Autocast::kLow || (node.body && node.attrs.get_string("kind") == "matmul");
}

}  // namespace

double measure_node(Backend& backend, const Graph& graph, const Node& node) {
  Graph single = single_node(graph, node);
  const Node& alone = single.nodes()[0];
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (ValueId input : alone.inputs)
    inputs.push_back(memory.emplace_back(make_operand(backend, single.type(input)))->data());
  for (ValueId output : alone.outputs)
    outputs.push_back(memory.emplace_back(backend.allocate(num_bytes(single.type(output))))->data());
  std::unique_ptr<Kernel> kernel = backend.compile(single, alone);
  std::unique_ptr<Memory> workspace = backend.allocate(kernel->workspace_bytes());
  kernel->use_workspace(workspace->data());
  auto run = [&] { kernel->run(inputs, outputs); };
  run();
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) seconds.push_back(backend.time(run));
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

void measure_library_kernels(Target& target, const Plan& plan, Backend& backend) {
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (!is_library_kernel(node)) continue;
    auto [at, fresh] = target.measured_seconds.try_emplace(kernel_key(plan.graph, node), 0.0);
    if (fresh) at->second = measure_node(backend, plan.graph, node);
  }
}

}  // namespace tokamak
