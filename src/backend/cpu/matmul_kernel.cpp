// matmul and fused_matmul: a product with a bias and GELU applied as it is written.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul.h"
#include "backend/reference_kernel.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/matmul.h"
#include "ops/matmul_dims.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <optional>

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

// A product and where its operands are.
struct MatmulNode {
  MatmulShape shape;
  MatmulOptions options;
  int a = 0, b = 1, bias = -1;  // positions among the inputs; -1: none
  DType bias_dtype = DType::kF32;
};

class MatmulKernel : public Kernel {
 public:
  explicit MatmulKernel(const MatmulNode& node) : matmul_(node.shape, node.options), at_(node) {
    if (node.bias_dtype != DType::kF32) bias_f32_.resize(size_t(node.shape.n));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    matmul_.run(in[size_t(at_.a)], in[size_t(at_.b)], at_.bias < 0 ? nullptr : bias(in[size_t(at_.bias)]), out[0],
                workspace_);
  }

  int64_t workspace_bytes() const override { return int64_t(matmul_.workspace_bytes()); }
  void use_workspace(void* memory) override { workspace_ = memory; }

 private:
  // The library adds biases in fp32.
  const float* bias(const void* from) {
    if (at_.bias_dtype == DType::kF32) return static_cast<const float*>(from);
    load(at_.bias_dtype, from, 0, int64_t(bias_f32_.size()), bias_f32_.data());
    return bias_f32_.data();
  }

  Matmul matmul_;
  MatmulNode at_;
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

MatmulNode read_matmul_group(const Node& group) {
  const Graph& body = *group.body;
  MatmulNode read;
  for (const Node& node : body.nodes()) {
    if (node.op == &op::matmul) {
      read.shape = shape_of(body, node);
      read.options.input = body.dtype(node.inputs[0]);
      read.a = argument_index(body, node.inputs[0]);
      read.b = argument_index(body, node.inputs[1]);
    } else if (node.op == &op::add) {
      read.bias = bias_index(body, node);
      read.options.bias = true;
    } else if (node.op == &op::gelu) {
      read.options.gelu = true;
    } else {
      TOKAMAK_CHECK(node.op->fusion == Fusion::kView, "the CPU's matmul has no epilogue '{}'", node.op->name);
    }
  }
  read.options.output = body.dtype(body.results()[0].value);
  if (read.bias >= 0) read.bias_dtype = body.dtype(body.arguments()[size_t(read.bias)].value);
  return read;
}

// A matmul or fused_matmul; nothing where the reference has to do it.
std::optional<MatmulNode> read_matmul(const Graph& graph, const Node& node) {
  if (graph.dtype(node.inputs[0]) == DType::kF16) return std::nullopt;
  if (node.body) return read_matmul_group(node);
  MatmulNode read{.shape = shape_of(graph, node), .options = {}};
  read.options.input = graph.dtype(node.inputs[0]);
  read.options.output = graph.dtype(node.outputs[0]);
  return read;
}

}  // namespace

std::unique_ptr<Kernel> make_matmul_kernel(const Graph& graph, const Node& node) {
  std::optional<MatmulNode> read = read_matmul(graph, node);
  return read ? std::make_unique<MatmulKernel>(*read) : make_reference_kernel(graph, node);
}

int64_t matmul_scratch(const Graph& graph, const Node& node, int) {
  std::optional<MatmulNode> read = read_matmul(graph, node);
  return read ? int64_t(Matmul::workspace_bytes(read->shape, read->options)) : 0;
}

}  // namespace tokamak::cpu
