// multi_add: over all tensors in one launch.
#include "backend/cuda/multi_add_kernel.h"

#include "backend/cuda/kernels.h"
#include "backend/cuda/tensor_list.h"

#include <fmt/core.h>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;         // as kernels/multi_add.cu
constexpr int64_t kPiece = 16 << 10;  // elements of a block

constexpr const char* kMultiAdd = "multi_add";

class MultiAddKernel : public Kernel {
 public:
  MultiAddKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), list_(context, cut_into_pieces(types_of(graph, node.outputs), kPiece),
                                 int64_t(node.inputs.size() + node.outputs.size())),
        function_(context.compiler->add(kMultiAdd, multi_add_source(node.attrs.get_int("terms")))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> addresses;  // struct Tensor in kernels/multi_add.cu
    for (size_t sum = 0; sum < out.size(); ++sum) {
      for (size_t term = sum; term < in.size(); term += out.size()) addresses.push_back(in[term]);
      addresses.push_back(out[sum]);
    }
    list_.set_addresses(addresses);
    function_->launch(context_.queue(), {dim3(list_.pieces()), dim3(kThreads), 0}, list_.piece_table(),
                      list_.address_table());
  }

 private:
  Context& context_;
  TensorList list_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string multi_add_source(int64_t terms) {
  return fmt::format("constexpr int kTerms = {};\n#include \"backend/cuda/kernels/multi_add.cu\"\n", terms);
}

KernelPtr make_multi_add_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<MultiAddKernel>(context, graph, node);
}

void compile_multi_add_ahead(Context& context, const Graph&, const Node& node) {
  compile_list_ahead(context, kMultiAdd, multi_add_source(node.attrs.get_int("terms")));
}

}  // namespace tokamak::cuda
