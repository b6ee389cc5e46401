#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "graph/host_tensor.h"
#include "graph/op_def.h"

namespace tokamak::cpu {
namespace {

class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(const Graph& graph, const Node& node) : node_(node) {
    for (ValueId input : node.inputs) inputs_.emplace_back(graph.type(input));
    for (ValueId output : node.outputs) output_types_.push_back(graph.type(output));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const HostTensor*> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) inputs.push_back(&read(inputs_[i], in[i]));
    std::vector<HostTensor> outputs(output_types_.begin(), output_types_.end());
    node_.op->reference(node_, inputs, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) write(outputs[i], out[i]);
  }

 private:
  // i32 goes element by element: not every integer is a float.
  static const HostTensor& read(HostTensor& tensor, const void* from) {
    float value = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.type.dtype == DType::kI32) {
        tensor[i] = static_cast<const int32_t*>(from)[i];
        continue;
      }
      load(tensor.type.dtype, from, i, 1, &value);
      tensor[i] = value;
    }
    return tensor;
  }

  static void write(const HostTensor& tensor, void* to) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      auto value = float(tensor[i]);
      store(tensor.type.dtype, &value, 1, to, i);
    }
  }

  Node node_;
  std::vector<HostTensor> inputs_;
  std::vector<ValueType> output_types_;
};

}  // namespace

std::unique_ptr<Kernel> make_reference_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<ReferenceKernel>(graph, node);
}

}  // namespace tokamak::cpu
