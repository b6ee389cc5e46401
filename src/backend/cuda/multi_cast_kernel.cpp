// multi_cast: over all tensors in one launch.
#include "backend/cuda/multi_cast_kernel.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/tensor_list.h"
#include "ops/multi_cast.h"

#include <fmt/core.h>

#include <cstddef>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;         // as kernels/multi_cast.cu
constexpr int64_t kPiece = 16 << 10;  // elements of a block

constexpr const char* kMultiCast = "multi_cast";

class MultiCastKernel : public Kernel {
 public:
  MultiCastKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context),
        list_(context, cut_into_pieces(types_of(graph, node.inputs), kPiece), 2 * int64_t(node.inputs.size())),
        places_(cast_places(graph, node)), bytes_(dtype_bytes(graph.dtype(node.outputs[0]))),
        function_(context.compiler->add(kMultiCast, multi_cast_source(graph.dtype(node.outputs[0])))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> addresses;  // struct Tensor in kernels/multi_cast.cu
    for (size_t t = 0; t < in.size(); ++t) {
      auto* output = static_cast<const std::byte*>(out[places_[t].output]);
      addresses.insert(addresses.end(), {in[t], output + places_[t].begin * bytes_});
    }
    list_.set_addresses(addresses);
    function_->launch(context_.queue(), {dim3(list_.pieces()), dim3(kThreads), 0}, list_.piece_table(),
                      list_.address_table());
  }

 private:
  Context& context_;
  TensorList list_;
  std::vector<CastPlace> places_;  // by input
  int64_t bytes_;                  // of an element of the outputs
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string multi_cast_source(DType to) {
  return fmt::format(
      "#include \"backend/cuda/kernels/storage.cuh\"\nusing Target = {};\n"
      "#include \"backend/cuda/kernels/multi_cast.cu\"\n",
      device_type(to));
}

KernelPtr make_multi_cast_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<MultiCastKernel>(context, graph, node);
}

void compile_multi_cast_ahead(Context& context, const Graph& graph, const Node& node) {
  compile_list_ahead(context, kMultiCast, multi_cast_source(graph.dtype(node.outputs[0])));
}

}  // namespace tokamak::cuda
