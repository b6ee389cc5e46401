// What has no kernel on the device: its operands go to the host and back.
#include "backend/reference_kernel.h"

#include "backend/cuda/kernels.h"

namespace tokamak::cuda {
namespace {

class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), on_host_(tokamak::make_reference_kernel(graph, node)) {
    for (ValueId input : node.inputs) inputs_.emplace_back(size_t(num_bytes(graph.type(input))));
    for (ValueId output : node.outputs) outputs_.emplace_back(size_t(num_bytes(graph.type(output))));
  }

  bool by_reference() const override { return true; }

  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      copy(inputs_[i].data(), inputs[i], inputs_[i].size(), cudaMemcpyDeviceToHost);
      in.push_back(inputs_[i].data());
    }
    for (std::vector<std::byte>& output : outputs_) out.push_back(output.data());
    on_host_->run(in, out);
    for (size_t i = 0; i < outputs.size(); ++i)
      copy(outputs[i], outputs_[i].data(), outputs_[i].size(), cudaMemcpyHostToDevice);
  }

 private:
  void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) const {
    TOKAMAK_CUDA(cudaMemcpyAsync(to, from, bytes, kind, context_.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context_.queue()));
  }

  Context& context_;
  std::unique_ptr<Kernel> on_host_;
  std::vector<std::vector<std::byte>> inputs_, outputs_;  // on the host
};

}  // namespace

KernelPtr make_reference_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<ReferenceKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
