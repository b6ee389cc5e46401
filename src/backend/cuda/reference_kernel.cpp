// Any op through its reference implementation on the host, in double precision: what has no kernel of its own still
// runs.
#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/host_storage.h"

namespace tokamak::cuda {
namespace {

class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(Context& context, const Graph& graph, const Node& node) : context_(context), node_(node) {
    for (ValueId input : node.inputs) input_types_.push_back(graph.type(input));
    for (ValueId output : node.outputs) output_types_.push_back(graph.type(output));
  }

  bool recordable() const override { return false; }

  void run(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    std::vector<HostTensor> in;
    for (size_t i = 0; i < inputs.size(); ++i) in.push_back(read(inputs[i], input_types_[i]));
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& tensor : in) pointers.push_back(&tensor);
    std::vector<HostTensor> out;
    for (const ValueType& type : output_types_) out.emplace_back(type);
    node_.op->reference(node_, pointers, out);
    for (size_t i = 0; i < outputs.size(); ++i) write(outputs[i], out[i]);
  }

 private:
  HostTensor read(const void* from, const ValueType& type) const {
    std::vector<std::byte> raw(size_t(num_bytes(type)));
    TOKAMAK_CUDA(cudaMemcpyAsync(raw.data(), from, raw.size(), cudaMemcpyDeviceToHost, context_.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context_.queue()));
    return from_storage(type, raw.data());
  }
  void write(void* to, const HostTensor& tensor) const {
    std::vector<std::byte> raw = to_storage(tensor);
    TOKAMAK_CUDA(cudaMemcpyAsync(to, raw.data(), raw.size(), cudaMemcpyHostToDevice, context_.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context_.queue()));
  }

  Context& context_;
  Node node_;
  std::vector<ValueType> input_types_, output_types_;
};

}  // namespace

KernelPtr make_reference_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<ReferenceKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
