// sample_token(logits (B, V), position (B), drawn (B), seeds (B, 2), settings (3)) -> token, position, drawn (B).
#include "backend/cuda/sample_token_kernel.h"

#include "backend/cuda/kernels.h"

#include <fmt/core.h>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 1024;           // as in kernels/sample_token.cu
constexpr int64_t kStaticBytes = 30720;  // of shared memory there, at most

class SampleTokenKernel : public Kernel {
 public:
  SampleTokenKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), rows_(unsigned(graph.shape(node.inputs[0])[0])) {
    int64_t row_bytes = node.attrs.get_int("vocab") * 4;
    bool shared = row_bytes + kStaticBytes <= context.info.shared_bytes;
    shared_bytes_ = shared ? int(row_bytes) : 0;
    function_ = context.compiler->add("sample_token", sample_token_source(graph, node, shared));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    function_->launch(context_.queue(), {dim3(rows_), dim3(kThreads), shared_bytes_}, in[0], in[1], in[2], in[3], in[4],
                      out[0], out[1], out[2]);
  }

 private:
  Context& context_;
  unsigned rows_;
  int shared_bytes_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string sample_token_source(const Graph& graph, const Node& node, bool shared) {
  return fmt::format(
             "#include \"backend/cuda/kernels/std.cuh\"\nnamespace tokamak {{\nconstexpr int kVocab = {}, kStride = "
             "{}, "
             "kPlaces = {};\nconstexpr bool kShared = {};\n}}\n",
             node.attrs.get_int("vocab"), graph.shape(node.inputs[0])[1], node.attrs.get_int("places"), shared) +
         std::string(embedded_source("backend/cuda/kernels/sample_token.cu"));
}

bool has_sample_token(const DeviceInfo&, const Graph& graph, const Node& node) {
  return graph.dtype(node.inputs[0]) == DType::kF32;
}

KernelPtr make_sample_token_kernel(Context& context, const Graph& graph, const Node& node) {
  if (!has_sample_token(context.info, graph, node)) return make_reference_kernel(context, graph, node);
  return std::make_unique<SampleTokenKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
