// transpose, slice, pad, concat.
#include "backend/cuda/kernels.h"
#include "backend/cuda/strided_copy.h"

namespace tokamak::cuda {
namespace {

class CopyLaunch {
 public:
  CopyLaunch(Context& context, const StridedCopy& copy) : context_(&context) {
    CopyKernel kernel = make_copy_kernel(copy);
    shape_ = kernel.shape;
    function_ = context.compiler->add(kernel.name, kernel.source);
  }
  void run(const void* from, void* to) const { function_->launch(context_->queue(), shape_, from, to); }

 private:
  Context* context_;
  LaunchShape shape_;
  std::shared_ptr<DeviceFunction> function_;
};

// One copy for each input.
class MovementKernel : public Kernel {
 public:
  explicit MovementKernel(std::vector<CopyLaunch> copies) : copies_(std::move(copies)) {}
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    for (size_t i = 0; i < copies_.size(); ++i) copies_[i].run(inputs[i], outputs[0]);
  }

 private:
  std::vector<CopyLaunch> copies_;
};

KernelPtr make_one(Context& context, const StridedCopy& copy) {
  return std::make_unique<MovementKernel>(std::vector<CopyLaunch>{{context, copy}});
}

}  // namespace

KernelPtr make_transpose_kernel(Context& context, const Graph& graph, const Node& node) {
  return make_one(context, transpose_copy(graph, node));
}
KernelPtr make_slice_kernel(Context& context, const Graph& graph, const Node& node) {
  return make_one(context, slice_copy(graph, node));
}
KernelPtr make_pad_kernel(Context& context, const Graph& graph, const Node& node) {
  return make_one(context, pad_copy(graph, node));
}
KernelPtr make_concat_kernel(Context& context, const Graph& graph, const Node& node) {
  std::vector<CopyLaunch> copies;
  int64_t at = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    copies.emplace_back(context, concat_copy(graph, node, i, at));
    at += graph.shape(node.inputs[i])[size_t(node.attrs.get_int("dim"))];
  }
  return std::make_unique<MovementKernel>(std::move(copies));
}

}  // namespace tokamak::cuda
