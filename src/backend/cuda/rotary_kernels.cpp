// rotary_qkv(q, k, v, positions) -> qkv; rotary_qkv_grad(dqkv, positions) -> dq, dk, dv; both with q, k and v in one.
#include "backend/cuda/rotary_kernels.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/kernels.h"
#include "base/divide.h"
#include "ops/packed_rotary.h"
#include "ops/rotary.h"

#include <fmt/ranges.h>

#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr int64_t kThreads = 256;  // as in kernels/rotary.cu

// Columns of a thread, next to each other: 16 bytes, or as many as half a head has.
int64_t columns_of_thread(const RotaryDims& d, DType dtype) { return std::gcd(d.D / 2, 16 / dtype_bytes(dtype)); }

bool is_packed(const Node& node) { return node.op == &op::packed_rotary || node.op == &op::packed_rotary_grad; }
bool is_gradient(const Node& node) { return node.op == &op::rotary_qkv_grad || node.op == &op::packed_rotary_grad; }

// Without groups q, k and v are turned where they lie.
bool is_in_place(const Node& node, const RotaryDims& d) { return is_packed(node) && d.group() == 1; }

class RotaryKernel : public Kernel {
 public:
  RotaryKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), is_gradient_(is_gradient(node)) {
    RotaryDims d = rotary_dims(spec_of(graph, node));
    int64_t bytes = dtype_bytes(graph.dtype(node.inputs[0]));
    if (is_in_place(node, d)) bytes_ = 3 * d.B * d.T * d.H * d.D * bytes;
    if (is_packed(node)) k_bytes_ = d.H * d.D * bytes, v_bytes_ = k_bytes_ + d.K * d.D * bytes;
    threads_ = d.B * d.T * d.K * (d.D / 2) / columns_of_thread(d, graph.dtype(node.inputs[0]));
    function_ = context.compiler->add(is_gradient_ ? "rotary_grad" : "rotary", rotary_source(graph, node));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    if (bytes_ > 0 && in[0] != out[0])
      TOKAMAK_CUDA(cudaMemcpyAsync(out[0], in[0], size_t(bytes_), cudaMemcpyDeviceToDevice, context_.queue()));
    const void* from = bytes_ > 0 ? out[0] : in[0];
    dim3 blocks(unsigned(ceil_div(threads_, kThreads)));
    if (is_gradient_)
      function_->launch(context_.queue(), {blocks, dim3(kThreads)}, from, in[1], out[0], part(out, out[0], 1, k_bytes_),
                        part(out, out[0], 2, v_bytes_), threads_);
    else
      function_->launch(context_.queue(), {blocks, dim3(kThreads)}, from, part(in, from, 1, k_bytes_),
                        part(in, from, 2, v_bytes_), in.back(), out[0], threads_);
  }

 private:
  // k or v, or its gradient, which is an operand of its own or lies behind `first`.
  template <typename Operands>
  const void* part(const Operands& operands, const void* first, size_t index, int64_t bytes) const {
    return v_bytes_ == 0 ? operands[index] : static_cast<const char*>(first) + bytes;
  }

  Context& context_;
  bool is_gradient_;
  int64_t threads_ = 0, k_bytes_ = 0, v_bytes_ = 0;  // where k and v begin; 0: they are operands of their own
  int64_t bytes_ = 0;                                // of all three, where they are turned in place; else 0
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
             "constexpr int64_t kStrideQ = {}, kStrideKv = {};\nconstexpr bool kInPlace = {};\n"
             "__constant__ float kFrequencies[] = {{{}}};\n}}\n",
             device_type(graph.dtype(node.inputs[0])), d.H, d.group(), d.D, d.position_rows * d.T,
             columns_of_thread(d, graph.dtype(node.inputs[0])), is_packed(node) ? d.projected() : d.H * d.D,
             is_packed(node) ? d.projected() : d.K * d.D, is_in_place(node, d), fmt::join(frequencies, ", ")) +
         std::string(embedded_source("backend/cuda/kernels/rotary.cu"));
}

KernelPtr make_rotary_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<RotaryKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
