#include "exec/measure.h"

#include "base/divide.h"
#include "base/random.h"
#include "graph/op_def.h"
#include "graph/single_node.h"
#include "ops/group.h"
#include "ops/host_storage.h"
#include "ops/row_block.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr int kRepeats = 5;
constexpr double kWorkSeconds = 0.3e-3;  // of each repeat, of short kernels: marks of time take microseconds themselves
constexpr double kMostRuns = 16;         // of a repeat
constexpr int kAhead = 3;                // runs that still take time when the host has asked for the next one
constexpr int64_t kPatternElements = (1 << 18) + 352;  // no multiple of a matrix's row, so that rows differ
constexpr int64_t kAlignment = 256;

// Uniform in [-1, 1); zeros, which are valid wherever integers are, for integers.
std::vector<std::byte> random_pattern(DType dtype) {
  HostTensor tensor({dtype, {kPatternElements}});
  if (is_float(dtype))
    for (int64_t i = 0; i < tensor.size(); ++i) tensor[i] = 2 * uniform_element(1, i, 0) - 1;
  return to_storage(tensor);
}

bool is_library_kernel(const Node& node) { return node.op->autocast == Autocast::kLow || node.op == &op::fused_matmul; }

int64_t padded(int64_t bytes) { return round_up(bytes, kAlignment); }

}  // namespace

// The pattern again and again over the whole operand, doubled on the device.
void NodeMeter::fill(std::byte* to, const ValueType& type) {
  std::vector<std::byte>& pattern = patterns_[type.dtype];
  if (pattern.empty()) pattern = random_pattern(type.dtype);
  int64_t bytes = num_bytes(type), filled = std::min(bytes, int64_t(pattern.size()));
  backend_.copy_in(to, pattern.data(), filled);
  for (; filled < bytes; filled *= 2) backend_.copy(to + filled, to, std::min(filled, bytes - filled));
}

double NodeMeter::seconds(const Graph& graph, const Node& node) {
  KernelNode measured = kernel_node(graph, node);
  Graph single = single_node(measured.graph, measured.node);
  const Node& alone = single.nodes()[0];
  std::unique_ptr<Kernel> kernel = backend_.compile(single, alone);
  int64_t total = padded(kernel->workspace_bytes());
  for (const auto* values : {&alone.inputs, &alone.outputs})
    for (ValueId value : *values) total += padded(num_bytes(single.type(value)));
  if (total > bytes_) {
    bytes_ = 0;
    operands_.reset();  // before there is more
    operands_ = backend_.allocate(total);
    bytes_ = total;
  }
  auto* at = static_cast<std::byte*>(operands_->data());
  auto take = [&](int64_t bytes) { return std::exchange(at, at + padded(bytes)); };
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (ValueId input : alone.inputs) {
    fill(at, single.type(input));
    inputs.push_back(take(num_bytes(single.type(input))));
  }
  for (ValueId output : alone.outputs) outputs.push_back(take(num_bytes(single.type(output))));
  kernel->use_workspace(at);
  auto run = [&] { kernel->run(inputs, outputs); };
  run();  // the first one may load it
  double one = backend_.time(run);
  return seconds_each(run, int(std::clamp(kWorkSeconds / one, 1.0, kMostRuns)));
}

// Of so many runs one behind the other, which begin behind others that nobody waits for.
double NodeMeter::seconds_each(const std::function<void()>& run, int count) {
  auto runs = [&] {
    for (int i = 0; i < count; ++i) run();
  };
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    for (int ahead = 0; ahead < std::min(count, kAhead); ++ahead) run();
    seconds.push_back(backend_.time(runs) / count);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
  return seconds[kRepeats / 2];
}

std::map<std::string, int> library_kernels(const Plan& plan) {
  std::map<std::string, int> found;
  for (const Launch& launch : plan.launches) {
    KernelNode kernel = kernel_node(plan.graph, plan.graph.nodes()[size_t(launch.node)]);
    if (is_library_kernel(kernel.node)) found.try_emplace(kernel_key(kernel.graph, kernel.node), launch.node);
  }
  return found;
}

}  // namespace tokamak
