// matmul and fused_matmul: by an own kernel where there is one, else by cuBLASLt.
#include "backend/cuda/gradient_matmul.h"
#include "backend/cuda/hopper_matmul.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_library.h"
#include "backend/cuda/thin_matmul.h"

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
    const MatmulForm& form = node_.form;
    MatmulOperands operands;
    operands.a = in[size_t(form.a)];
    operands.b = in[size_t(form.b)];
    operands.output = out[size_t(form.y)];
    if (form.bias >= 0) operands.bias = in[size_t(form.bias)];
    if (form.scale_a >= 0) operands.scale_a = in[size_t(form.scale_a)], operands.scale_b = in[size_t(form.scale_b)];
    if (form.addend >= 0) operands.addend = in[size_t(form.addend)];
    if (form.operand >= 0) operands.aux = const_cast<void*>(in[size_t(form.operand)]);  // only read
    if (form.argument >= 0) operands.aux = out[size_t(form.argument)];
    return operands;
  }

  Context& context_;
  MatmulNode node_;
  MatmulCall call_;
  MatmulAlgorithm algorithm_;
  void* workspace_ = nullptr;
};

bool is_own(const DeviceInfo& info, const MatmulNode& matmul) {
  return hopper_supports(matmul, {info.major, info.minor});
}

bool is_gradient(const DeviceInfo& info, const MatmulNode& matmul) {
  return gradient_supports(matmul, {info.major, info.minor});
}

}  // namespace

bool has_matmul(const DeviceInfo& info, const Graph& graph, const Node& node) {
  MatmulNode matmul = matmul_node(graph, node);
  return has_library_formats(matmul.problem) || is_gradient(info, matmul);
}

KernelPtr make_matmul_kernel(Context& context, const Graph& graph, const Node& node) {
  MatmulNode matmul = matmul_node(graph, node);
  if (is_gradient(context.info, matmul)) return make_gradient_matmul(context, matmul);
  if (!has_library_formats(matmul.problem)) return make_reference_kernel(context, graph, node);
  if (thin_supports(matmul))
    return make_thin_matmul(context, matmul, {.early = reads_weights_early(graph, node, matmul.form)});
  if (is_own(context.info, matmul)) return make_hopper_matmul(context, matmul);
  return std::make_unique<MatmulKernel>(context, matmul);
}

void compile_matmul_ahead(Context& context, const Graph& graph, const Node& node) {
  MatmulNode matmul = matmul_node(graph, node);
  if (thin_supports(matmul) || is_own(context.info, matmul) || is_gradient(context.info, matmul))
    make_matmul_kernel(context, graph, node);
}

int64_t matmul_scratch(const DeviceInfo& info, const Graph& graph, const Node& node) {
  MatmulNode matmul = matmul_node(graph, node);
  if (is_gradient(info, matmul)) return gradient_scratch_bytes(matmul.problem, info.multiprocessors);
  if (thin_supports(matmul) || !has_library_formats(matmul.problem)) return 0;
  if (is_own(info, matmul)) return hopper_scratch_bytes(matmul);
  return expected_workspace_bytes(matmul.problem, info.multiprocessors);
}

bool takes_matmul(const DeviceInfo& info, const Graph& graph, const Node& group) {
  constexpr int64_t kFewRows = 128;  // such as those of a prompt, which leave most of a tile empty
  MatmulNode matmul = matmul_node(graph, group);
  if (thin_supports(matmul) || is_gradient(info, matmul)) return true;
  if (matmul.form.prologue || !has_library_formats(matmul.problem)) return false;
  switch (matmul.problem.epilogue) {
    case MatmulEpilogue::kBiasGeluAux:
    case MatmulEpilogue::kGeluGradSums:
    case MatmulEpilogue::kFunction: return is_own(info, matmul) && matmul.form.m >= kFewRows;
    case MatmulEpilogue::kBiasGelu: return false;
    default: return true;
  }
}

}  // namespace tokamak::cuda
