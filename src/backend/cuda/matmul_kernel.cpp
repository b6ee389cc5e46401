// matmul nodes, and groups of kind matmul, by cuBLASLt.
#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_library.h"
#include "base/error.h"
#include "graph/op_def.h"

namespace tokamak::cuda {
namespace {

class MatmulKernel : public Kernel {
 public:
  MatmulKernel(Context& context, const MatmulNode& node)
      : context_(context), node_(node), call_(node.problem), algorithm_(context.matmuls().choose(call_)) {}

  int64_t workspace_bytes() const override { return algorithm_.workspace_bytes; }
  void use_workspace(void* memory) override { workspace_ = memory; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    call_.run(context_.matmuls().handle(), operands(in, out), algorithm_, workspace_, context_.queue());
  }

 private:
  MatmulOperands operands(std::span<const void* const> in, std::span<void* const> out) const {
    MatmulOperands operands;
    operands.a = in[size_t(node_.a)];
    operands.b = in[size_t(node_.b)];
    operands.output = out[size_t(node_.output)];
    if (node_.bias >= 0) operands.bias = in[size_t(node_.bias)];
    if (node_.addend >= 0) operands.addend = in[size_t(node_.addend)];
    if (node_.aux_input >= 0) operands.aux = const_cast<void*>(in[size_t(node_.aux_input)]);  // only read
    if (node_.aux_output >= 0) operands.aux = out[size_t(node_.aux_output)];
    return operands;
  }

  Context& context_;
  MatmulNode node_;
  MatmulCall call_;
  MatmulAlgorithm algorithm_;
  void* workspace_ = nullptr;
};

MatmulNode read(const Graph& graph, const Node& node) {
  return node.body ? read_matmul_group(node) : read_matmul(graph, node);
}

}  // namespace

KernelPtr make_matmul_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<MatmulKernel>(context, read(graph, node));
}

int64_t matmul_scratch(const DeviceInfo& info, const Graph& graph, const Node& node) {
  return expected_workspace_bytes(read(graph, node).problem, info.multiprocessors);
}

}  // namespace tokamak::cuda
