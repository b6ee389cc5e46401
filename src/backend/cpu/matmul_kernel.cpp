// matmul nodes, and groups of kind matmul: a product with a bias and GELU applied as it is written.
#include "backend/cpu/convert.h"
#include "backend/cpu/group_kernel.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul.h"
#include "base/error.h"
#include "ops/matmul_dims.h"
#include "ops/ops.h"

#include <algorithm>

namespace tokamak::cpu {
namespace {

MatmulShape shape_of(const Graph& graph, const Node& node) {
  MatmulDims d = matmul_dims(spec_of(graph, node));
  MatmulShape shape;
  shape.batch = d.batch;
  shape.m = d.m;
  shape.n = d.n;
  shape.k = d.k;
  shape.trans_a = node.attrs.get_bool("trans_a");
  shape.trans_b = node.attrs.get_bool("trans_b");
  return shape;
}

class MatmulKernel : public Kernel {
 public:
  // Positions of a, b and the bias (-1: none) among the inputs, and the type in which the bias lies there.
  MatmulKernel(const MatmulShape& shape, const MatmulOptions& options, int a, int b, int bias = -1,
               DType bias_dtype = DType::kF32)
      : matmul_(shape, options), a_(a), b_(b), bias_(bias), bias_dtype_(bias_dtype) {
    if (bias_dtype != DType::kF32) bias_f32_.resize(size_t(shape.n));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    matmul_.run(in[size_t(a_)], in[size_t(b_)], bias_ < 0 ? nullptr : bias(in[size_t(bias_)]), out[0], workspace_);
  }

  int64_t workspace_bytes() const override { return int64_t(matmul_.workspace_bytes()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

 private:
  // The library adds biases in fp32.
  const float* bias(const void* from) {
    if (bias_dtype_ == DType::kF32) return static_cast<const float*>(from);
    load(bias_dtype_, from, 0, int64_t(bias_f32_.size()), bias_f32_.data());
    return bias_f32_.data();
  }

  Matmul matmul_;
  int a_, b_, bias_;
  DType bias_dtype_;
  std::vector<float> bias_f32_;
  void* workspace_ = nullptr;
};

int argument_index(const Graph& body, ValueId value) {
  while (body.producer(value) >= 0) {  // through reshapes
    const Node& node = body.nodes()[size_t(body.producer(value))];
    if (node.op->fusion != Fusion::kView) return -1;
    value = node.inputs[0];
  }
  for (size_t i = 0; i < body.arguments().size(); ++i)
    if (body.arguments()[i].value == value) return int(i);
  return -1;
}

// The operand of an epilogue's add that comes from outside.
int bias_index(const Graph& body, const Node& add) {
  int index = std::max(argument_index(body, add.inputs[0]), argument_index(body, add.inputs[1]));
  TOKAMAK_CHECK(index >= 0, "the epilogue's add needs a bias");
  return index;
}

std::unique_ptr<Kernel> make_matmul_group(const Node& group) {
  const Graph& body = *group.body;
  MatmulShape shape;
  MatmulOptions options;
  int a = -1, b = -1, bias = -1;
  for (const Node& node : body.nodes()) {
    if (node.op == &op::matmul) {
      shape = shape_of(body, node);
      options.input = body.dtype(node.inputs[0]);
      a = argument_index(body, node.inputs[0]);
      b = argument_index(body, node.inputs[1]);
    } else if (node.op == &op::add) {
      bias = bias_index(body, node);
      options.bias = true;
    } else if (node.op == &op::gelu) {
      options.gelu = true;
    } else {
      TOKAMAK_CHECK(node.op->fusion == Fusion::kView, "the CPU's matmul has no epilogue '{}'", node.op->name);
    }
  }
  options.output = body.dtype(body.results()[0].value);
  DType bias_dtype = bias < 0 ? DType::kF32 : body.dtype(body.arguments()[size_t(bias)].value);
  return std::make_unique<MatmulKernel>(shape, options, a, b, bias, bias_dtype);
}

}  // namespace

std::unique_ptr<Kernel> make_matmul_kernel(const Graph& graph, const Node& node) {
  MatmulOptions options;
  options.input = graph.dtype(node.inputs[0]);
  options.output = graph.dtype(node.outputs[0]);
  if (options.input == DType::kF16) return make_reference_kernel(graph, node);
  return std::make_unique<MatmulKernel>(shape_of(graph, node), options, 0, 1);
}

std::unique_ptr<Kernel> make_any_group_kernel(const Graph& graph, const Node& node) {
  if (node.attrs.get_string("kind") == "matmul")
    return graph.dtype(node.inputs[0]) == DType::kF16 ? make_reference_kernel(graph, node) : make_matmul_group(node);
  return make_group_kernel(graph, node);
}

}  // namespace tokamak::cpu
