// attention_decode(qkv (B, t, 3C), cache (B, capacity, 2C), position i32[]) -> out (B, t, C), cache.
#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/device_types.h"

#include <fmt/core.h>

namespace tokamak::cuda {
namespace {

// As tokamak::DecodeArguments in kernels/attention_decode.cu.
struct DecodeArguments {
  int32_t time, heads, capacity;
  float scale;
  const void* position;
};

class DecodeKernel : public Kernel {
 public:
  DecodeKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), qkv_(graph.type(node.inputs[0])), cache_(graph.type(node.inputs[1])),
        heads_(node.attrs.get_int("heads")), scale_(node.attrs.get_double("scale")) {
    int64_t head_dim = qkv_.shape[2] / 3 / heads_;
    std::string source = attention_decode_source(qkv_.dtype, cache_.dtype, head_dim);
    append_ = context.compiler->add("append_to_cache", source);
    attend_ = context.compiler->add("attend_to_cache", source);
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    if (out[1] != in[1])
      TOKAMAK_CUDA(
          cudaMemcpyAsync(out[1], in[1], size_t(num_bytes(cache_)), cudaMemcpyDeviceToDevice, context_.queue()));
    int64_t batch = qkv_.shape[0], time = qkv_.shape[1], added = num_elements(qkv_.shape) / 3 * 2;
    DecodeArguments a{int32_t(time), int32_t(heads_), int32_t(cache_.shape[1]), float(scale_), in[2]};
    append_->launch(context_.queue(), {dim3(unsigned((added + 255) / 256)), dim3(256)}, in[0], out[1], added, a);
    attend_->launch(context_.queue(), {dim3(unsigned(time), unsigned(heads_), unsigned(batch)), dim3(256)}, in[0],
                    out[1], out[0], a);
  }

 private:
  Context& context_;
  ValueType qkv_, cache_;
  int64_t heads_;
  double scale_;
  std::shared_ptr<DeviceFunction> append_, attend_;
};

}  // namespace

std::string attention_decode_source(DType dtype, DType cache, int64_t head_dim) {
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\nnamespace tokamak {{\nusing Element = {};\n"
             "using Cached = {};\nconstexpr int kHeadDim = {};\n}}\n",
             device_type(dtype), device_type(cache), head_dim) +
         std::string(embedded_source("backend/cuda/kernels/attention_decode.cu"));
}

KernelPtr make_attention_decode_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<DecodeKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
