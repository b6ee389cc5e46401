// attention_decode(qkv (B, t, 3C), cache (B, capacity, 2C), position i32 (B)) -> out (B, t, C), cache.
#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/device_types.h"
#include "base/divide.h"
#include "ops/attention_decode.h"

#include <fmt/core.h>

#include <limits>

namespace tokamak::cuda {
namespace {

constexpr int kDecodeThreads = 512;  // of decode_one, as in kernels/decode_keys.cuh
constexpr int64_t kSplit = 1024;     // keys of a block of decode_one

// As tokamak::DecodeArguments in kernels/attention_decode.cu.
struct DecodeArguments {
  int32_t time, heads, capacity, window;
  float scale;
  const void* position;
};

struct DecodeShape {
  int64_t batch, time, heads, head_dim, capacity;

  DecodeShape(const Graph& graph, const Node& node)
      : DecodeShape(attention_decode_dims(spec_of(graph, node)), graph.shape(node.inputs[1])[1]) {}

  int64_t splits() const { return time == 1 ? ceil_div(capacity, kSplit) : 1; }
  // As tokamak::Split in kernels/attention_decode.cu.
  int64_t split_bytes() const { return splits() > 1 ? batch * heads * splits() * (head_dim + 2) * 4 : 0; }

 private:
  DecodeShape(const AttentionDims& d, int64_t places)
      : batch(d.B), time(d.T), heads(d.H), head_dim(d.D), capacity(places) {}
};

// As kernels/decode_keys.cuh says.
bool takes_tensor_cores(DType dtype, DType cache, int64_t head_dim) {
  return dtype == cache && dtype_bytes(dtype) == 2 && head_dim == 64;
}

class DecodeKernel : public Kernel {
 public:
  DecodeKernel(Context& context, const Graph& graph, const Node& node, const KernelStart& start)
      : context_(context), shape_(graph, node), cache_bytes_(size_t(num_bytes(graph.type(node.inputs[1])))),
        scale_(float(node.attrs.get_double("scale"))), emptied_(start.link) {
    if (int64_t window = attention_decode_window(node.attrs); window > 0) window_ = int32_t(window);
    DType dtype = graph.dtype(node.inputs[0]), cache = graph.dtype(node.inputs[1]);
    std::string source = attention_decode_source(dtype, cache, shape_.head_dim, start);
    auto function = [&](const char* name) { return context.compiler->add(name, source); };
    if (shape_.time == 1) {
      decode_ = function("decode_one");
      if (shape_.splits() > 1) combine_ = function("combine_splits");
    } else {
      append_ = function("append_to_cache");
      attend_ = function("attend_to_cache");
    }
  }

  int64_t workspace_bytes() const override { return shape_.split_bytes(); }
  void use_workspace(void* memory) override { splits_ = memory; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    if (out[1] != in[1])
      TOKAMAK_CUDA(cudaMemcpyAsync(out[1], in[1], cache_bytes_, cudaMemcpyDeviceToDevice, context_.queue()));
    const DecodeShape& s = shape_;
    DecodeArguments a{int32_t(s.time), int32_t(s.heads), int32_t(s.capacity), window_, scale_, in[2]};
    auto heads = unsigned(s.heads), rows = unsigned(s.batch);
    if (decode_) {
      decode_->launch(context_.queue(), {dim3(unsigned(s.splits()), heads, rows), dim3(kDecodeThreads)}, in[0], out[1],
                      out[0], s.splits() > 1 ? splits_ : nullptr, a, emptied_);
      if (combine_)
        combine_->launch(context_.queue(), {dim3(heads, rows), dim3(128)}, static_cast<const void*>(splits_),
                         int32_t(s.splits()), out[0]);
      return;
    }
    int64_t added = s.batch * s.time * 2 * s.heads * s.head_dim;
    append_->launch(context_.queue(), {dim3(unsigned((added + 255) / 256)), dim3(256)}, in[0], out[1], added, a);
    attend_->launch(context_.queue(), {dim3(unsigned(s.time), heads, rows), dim3(256)}, in[0],
                    static_cast<const void*>(out[1]), out[0], a);
  }

 private:
  Context& context_;
  DecodeShape shape_;
  size_t cache_bytes_;
  int32_t window_ = std::numeric_limits<int32_t>::max();
  float scale_;
  std::shared_ptr<DeviceFunction> append_, attend_;   // of several tokens a row
  std::shared_ptr<DeviceFunction> decode_, combine_;  // of one
  void* splits_ = nullptr;
  Emptied emptied_;
};

}  // namespace

std::string attention_decode_source(DType dtype, DType cache, int64_t head_dim, const KernelStart& start) {
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\nnamespace tokamak {{\nusing Element = {};\n"
             "using Cached = {};\nconstexpr int kHeadDim = {}, kSplit = {};\nconstexpr bool kTensor = {}, kEarly = {}, "
             "kLinked = {}, kAwaits = {};\n}}\n",
             device_type(dtype), device_type(cache), head_dim, kSplit, takes_tensor_cores(dtype, cache, head_dim),
             start.early, start.link != nullptr, start.awaits()) +
         std::string(embedded_source("backend/cuda/kernels/attention_decode.cu"));
}

bool reads_cache_early(const Graph& graph, const Node& node) {
  ValueId qkv = node.inputs[0], cache = node.inputs[1], position = node.inputs[2];
  return graph.producer(behind_all_views(graph, qkv)) >= 0 && graph.producer(cache) < 0 && graph.producer(position) < 0;
}

bool decode_can_chain(const Graph& graph, const Node& node) {
  return attention_decode_dims(spec_of(graph, node)).T == 1 && reads_cache_early(graph, node);
}

KernelPtr make_decode_link(Context& context, const Graph& graph, const Node& node, const ChainLink& link) {
  return std::make_unique<DecodeKernel>(context, graph, node,
                                        KernelStart{.early = !link.waits_for_kernels(), .link = &link});
}

KernelPtr make_attention_decode_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<DecodeKernel>(context, graph, node, KernelStart{.early = reads_cache_early(graph, node)});
}

int64_t attention_decode_scratch(const DeviceInfo&, const Graph& graph, const Node& node) {
  return DecodeShape(graph, node).split_bytes();
}

}  // namespace tokamak::cuda
