// matmul and fused_matmul: a product with a bias and GELU applied as it is written.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul.h"
#include "graph/op_def.h"
#include "ops/matmul_form.h"
#include "ops/pointwise.h"

namespace tokamak::cpu {
namespace {

MatmulShape shape_of(const MatmulForm& form) {
  MatmulShape shape;
  shape.batch = form.batch;
  shape.m = form.m;
  shape.n = form.n;
  shape.k = form.k;
  shape.trans_a = form.trans_a;
  shape.trans_b = form.trans_b;
  return shape;
}

MatmulOptions options_of(const MatmulForm& form) {
  MatmulOptions options;
  options.input = form.input;
  options.output = form.output;
  options.bias = form.bias >= 0;
  options.gelu = form.function.has_value();
  return options;
}

class MatmulKernel : public Kernel {
 public:
  explicit MatmulKernel(const MatmulForm& form) : matmul_(shape_of(form), options_of(form)), form_(form) {
    if (form.bias >= 0 && form.output != DType::kF32) bias_f32_.resize(size_t(form.n));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const float* vector = form_.bias < 0 ? nullptr : bias(in[size_t(form_.bias)]);
    matmul_.run(in[size_t(form_.a)], in[size_t(form_.b)], vector, out[0], workspace_);
  }

  int64_t workspace_bytes() const override { return int64_t(matmul_.workspace_bytes()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

 private:
  // The library adds biases in fp32.
  const float* bias(const void* from) {
    if (form_.output == DType::kF32) return static_cast<const float*>(from);
    load(form_.output, from, 0, int64_t(bias_f32_.size()), bias_f32_.data());
    return bias_f32_.data();
  }

  Matmul matmul_;
  MatmulForm form_;
  std::vector<float> bias_f32_;
  void* workspace_ = nullptr;
};

}  // namespace

bool takes_matmul(const Graph& graph, const Node& node) {
  MatmulForm form = read_matmul(graph, node);
  return form.addend < 0 && (!form.function || (form.applies(op::gelu) && form.argument < 0 && form.sums < 0));
}

bool has_matmul(const Graph& graph, const Node& node) {
  return graph.dtype(node.inputs[0]) != DType::kF16 && takes_matmul(graph, node);
}

std::unique_ptr<Kernel> make_matmul_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<MatmulKernel>(read_matmul(graph, node));
}

int64_t matmul_scratch(const Graph& graph, const Node& node, int) {
  MatmulForm form = read_matmul(graph, node);
  return int64_t(Matmul::workspace_bytes(shape_of(form), options_of(form)));
}

}  // namespace tokamak::cpu
