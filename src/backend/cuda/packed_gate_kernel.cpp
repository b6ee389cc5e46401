// packed_gate(packed) -> y; packed_gate_grad(dy, packed) -> dpacked.
#include "backend/cuda/packed_gate_kernel.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/kernels.h"
#include "base/divide.h"
#include "graph/op_def.h"
#include "ops/packed_gate.h"

#include <fmt/core.h>

#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr int64_t kThreads = 256, kPerThread = 2;  // as in kernels/packed_gate.cu; of the gradient 1

// y or its gradient.
const ValueType& half_of(const Graph& graph, const Node& node) {
  return graph.type(node.op == &op::packed_gate ? node.outputs[0] : node.inputs[0]);
}

// Elements next to each other of a thread: 16 bytes, or as many as divide a row.
int64_t vector_of(const ValueType& half) { return std::gcd(half.shape.back(), 16 / dtype_bytes(half.dtype)); }

int64_t num_vectors(const ValueType& half) { return num_elements(half.shape) / vector_of(half); }

class PackedGateKernel : public Kernel {
 public:
  PackedGateKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context),
        function_(context.compiler->add(std::string(node.op->name), packed_gate_source(graph, node))) {
    bool is_gradient = node.op == &op::packed_gate_grad;
    blocks_ = unsigned(ceil_div(num_vectors(half_of(graph, node)), is_gradient ? kThreads : kThreads * kPerThread));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    LaunchShape shape{dim3(blocks_), dim3(kThreads)};
    if (in.size() == 2)
      function_->launch(context_.queue(), shape, in[0], in[1], out[0]);
    else
      function_->launch(context_.queue(), shape, in[0], out[0]);
  }

 private:
  Context& context_;
  std::shared_ptr<DeviceFunction> function_;
  unsigned blocks_ = 0;
};

}  // namespace

std::string packed_gate_source(const Graph& graph, const Node& node) {
  const ValueType& half = half_of(graph, node);
  // Of 32 bits where all places fit, as a division of 64 is many instructions.
  bool fits = 4 * num_elements(half.shape) < int64_t(1) << 32;
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\nnamespace tokamak {{\nusing Element = {};\n"
             "using Index = {};\nconstexpr int kHidden = {}, kVector = {};\nconstexpr Index kVectors = {};\n}}\n",
             device_type(half.dtype), fits ? "uint32_t" : "uint64_t", half.shape.back(), vector_of(half),
             num_vectors(half)) +
         std::string(embedded_source("backend/cuda/kernels/packed_gate.cu"));
}

KernelPtr make_packed_gate_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<PackedGateKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
