// Generated kernels of groups on GPU 0 at training shapes: GB/s of what each group reads and writes, beside a copy.
#include "backend/cuda/cuda_backend.h"
#include "graph/op_def.h"
#include "tests/backend/cuda/group_bodies.h"

#include <fmt/core.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr int kRepeats = 20;

double seconds_of(Backend& backend, const std::function<void()>& work) {
  work();
  double best = 1e9;
  for (int i = 0; i < kRepeats; ++i) best = std::min(best, backend.time(work));
  return best;
}

// Operands are zeros: the time does not depend on them.
void measure(Backend& backend, const test::GroupCase& c, int64_t rows, int64_t cols) {
  Graph graph = test::make_group(c, rows, cols);
  const Node& node = graph.nodes()[0];
  std::unique_ptr<Kernel> kernel = backend.compile(graph, node);
  std::vector<std::unique_ptr<Memory>> memory;
  auto place = [&](int64_t bytes) {
    memory.push_back(backend.allocate(std::max<int64_t>(bytes, 64)));
    return memory.back()->data();
  };
  if (kernel->workspace_bytes() > 0) kernel->use_workspace(place(kernel->workspace_bytes()));
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (ValueId v : node.inputs) inputs.push_back(place(num_bytes(graph.type(v))));
  for (ValueId v : node.outputs) outputs.push_back(place(num_bytes(graph.type(v))));
  double seconds = seconds_of(backend, [&] { kernel->run(inputs, outputs); });
  double bytes = node_cost(graph, node).bytes;
  fmt::print("{:<24} {:<8} {:>6} x {:<6} {:>8.1f} us {:>7.0f} GB/s\n", c.name, c.op->name, rows, cols, seconds * 1e6,
             bytes / seconds / 1e9);
}

void measure_copy(Backend& backend, int64_t bytes) {
  auto from = backend.allocate(bytes), to = backend.allocate(bytes);
  double seconds = seconds_of(backend, [&] { backend.copy(to->data(), from->data(), bytes); });
  fmt::print("{:<49} {:>8.1f} us {:>7.0f} GB/s\n", "copy", seconds * 1e6, 2 * double(bytes) / seconds / 1e9);
}

}  // namespace
}  // namespace tokamak

int main() {
  using namespace tokamak;
  if (cuda::device_count() == 0) {
    fmt::print("there is no GPU here\n");
    return 0;
  }
  std::unique_ptr<Backend> backend = cuda::make_backend(0, cuda::default_cache());
  measure_copy(*backend, 256 << 20);
  for (const test::GroupCase& c : test::group_cases()) {
    bool loss = c.name == "cross_entropy_both", wide = c.name == "gelu_gradient" || c.name == "bias_gradient";
    if (loss) measure(*backend, c, 16384, 50304);
    if (wide) measure(*backend, c, 65536, 3072);
    if (!loss) measure(*backend, c, 65536, 768);
    if (!loss) measure(*backend, c, 16384, 1600);
  }
  return 0;
}
