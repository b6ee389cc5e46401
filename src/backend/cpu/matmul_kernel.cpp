// matmul and fused_matmul: a product with a bias and GELU applied as it is written.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/thin_matmul.h"
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

// The vector of a form, in fp32 as kernels add it.
class BiasOf {
 public:
  explicit BiasOf(const MatmulForm& form) : at_(form.bias), type_(form.output) {
    if (at_ >= 0 && type_ != DType::kF32) floats_.resize(size_t(form.n));
  }

  const float* read(std::span<const void* const> in) {
    if (at_ < 0) return nullptr;
    const void* from = in[size_t(at_)];
    if (type_ == DType::kF32) return static_cast<const float*>(from);
    load(type_, from, 0, int64_t(floats_.size()), floats_.data());
    return floats_.data();
  }

 private:
  int at_;
  DType type_;
  std::vector<float> floats_;
};

class MatmulKernel : public Kernel {
 public:
  explicit MatmulKernel(const MatmulForm& form) : matmul_(shape_of(form), options_of(form)), form_(form), bias_(form) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    matmul_.run(in[size_t(form_.a)], in[size_t(form_.b)], bias_.read(in), out[0], workspace_);
  }

  int64_t workspace_bytes() const override { return int64_t(matmul_.workspace_bytes()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

 private:
  Matmul matmul_;
  MatmulForm form_;
  BiasOf bias_;
  void* workspace_ = nullptr;
};

class ThinMatmulKernel : public Kernel {
 public:
  explicit ThinMatmulKernel(const MatmulForm& form)
      : shape_(shape_of(form)), options_(options_of(form)), form_(form), bias_(form) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    thin_matmul(shape_, options_, in[size_t(form_.a)], in[size_t(form_.b)], bias_.read(in), out[0]);
  }

 private:
  MatmulShape shape_;
  MatmulOptions options_;
  MatmulForm form_;
  BiasOf bias_;
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
  MatmulForm form = read_matmul(graph, node);
  if (is_thin(shape_of(form), options_of(form))) return std::make_unique<ThinMatmulKernel>(form);
  return std::make_unique<MatmulKernel>(form);
}

int64_t matmul_scratch(const Graph& graph, const Node& node, int) {
  MatmulForm form = read_matmul(graph, node);
  if (is_thin(shape_of(form), options_of(form))) return 0;
  return int64_t(Matmul::workspace_bytes(shape_of(form), options_of(form)));
}

}  // namespace tokamak::cpu
