// rotary_qkv(q, k, v, positions) -> qkv; rotary_qkv_grad(dqkv, positions) -> dq, dk, dv.
#include "backend/cuda/rotary_kernels.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/kernels.h"
#include "base/divide.h"
#include "ops/rotary.h"

#include <fmt/ranges.h>

#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr int64_t kThreads = 256;  // as in kernels/rotary.cu

// Columns of a thread, next to each other: 16 bytes, or as many as half a head has.
int64_t columns_of_thread(const RotaryDims& d, DType dtype) { return std::gcd(d.D / 2, 16 / dtype_bytes(dtype)); }

class RotaryKernel : public Kernel {
 public:
  RotaryKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), is_gradient_(node.op == &op::rotary_qkv_grad) {
    RotaryDims d = rotary_dims(spec_of(graph, node));
    threads_ = d.B * d.T * d.K * (d.D / 2) / columns_of_thread(d, graph.dtype(node.inputs[0]));
    function_ = context.compiler->add(is_gradient_ ? "rotary_grad" : "rotary", rotary_source(graph, node));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    dim3 blocks(unsigned(ceil_div(threads_, kThreads)));
    if (is_gradient_)
      function_->launch(context_.queue(), {blocks, dim3(kThreads)}, in[0], in[1], out[0], out[1], out[2], threads_);
    else
      function_->launch(context_.queue(), {blocks, dim3(kThreads)}, in[0], in[1], in[2], in[3], out[0], threads_);
  }

 private:
  Context& context_;
  bool is_gradient_;
  int64_t threads_ = 0;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string rotary_source(const Graph& graph, const Node& node) {
  RotaryDims d = rotary_dims(spec_of(graph, node));
  std::vector<std::string> frequencies;
  for (float frequency : rotary_frequencies(node.attrs)) frequencies.push_back(fmt::format("{:.9e}f", frequency));
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\nnamespace tokamak {{\nusing Element = {};\n"
             "constexpr int kHeads = {}, kGroup = {}, kHeadDim = {}, kPositions = {}, kVector = {};\n"
             "__constant__ float kFrequencies[] = {{{}}};\n}}\n",
             device_type(graph.dtype(node.inputs[0])), d.H, d.group(), d.D, d.position_rows * d.T,
             columns_of_thread(d, graph.dtype(node.inputs[0])), fmt::join(frequencies, ", ")) +
         std::string(embedded_source("backend/cuda/kernels/rotary.cu"));
}

KernelPtr make_rotary_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<RotaryKernel>(context, graph, node);
}
KernelPtr make_rotary_grad_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<RotaryKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
