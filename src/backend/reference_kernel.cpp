#include "backend/reference_kernel.h"

#include "graph/op_def.h"
#include "ops/host_storage.h"

#include <cstring>

namespace tokamak {
namespace {

class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(const Graph& graph, const Node& node) : node_(node) {
    for (ValueId input : node.inputs) input_types_.push_back(graph.type(input));
    for (ValueId output : node.outputs) output_types_.push_back(graph.type(output));
  }

  bool by_reference() const override { return true; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<HostTensor> inputs;
    std::vector<const HostTensor*> pointers;
    for (size_t i = 0; i < in.size(); ++i)
      inputs.push_back(from_storage(input_types_[i], static_cast<const std::byte*>(in[i])));
    for (const HostTensor& tensor : inputs) pointers.push_back(&tensor);
    std::vector<HostTensor> outputs(output_types_.begin(), output_types_.end());
    node_.op->reference(node_, pointers, outputs);
    for (size_t i = 0; i < out.size(); ++i) write(outputs[i], out[i]);
  }

 private:
  static void write(HostTensor& tensor, void* to) {
    if (is_float(tensor.type.dtype))
      for (double& value : tensor.data) value = double(float(value));
    std::vector<std::byte> raw = to_storage(tensor);
    std::memcpy(to, raw.data(), raw.size());
  }

  Node node_;
  ValueTypes input_types_, output_types_;
};

}  // namespace

std::unique_ptr<Kernel> make_reference_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<ReferenceKernel>(graph, node);
}

}  // namespace tokamak
