// float8_scales: over all activations in one launch.
#include "backend/cuda/float8_scales_kernel.h"

#include "backend/cuda/kernels.h"
#include "backend/cuda/tensor_list.h"
#include "ops/float8_scales.h"

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;  // as kernels/float8_scales.cu
constexpr size_t kOperands = 4;

// As in kernels/float8_scales.cu.
struct Bound {
  float length, rounding;
  int32_t dtypes[kOperands], counts[kOperands];
};

std::vector<Bound> bounds_of(const Graph& graph, const Node& node) {
  std::vector<Bound> bounds;
  for (const Float8Bound& of : float8_bounds(node)) {
    Bound& bound = bounds.emplace_back(Bound{float(float8_row_length(of)), float(kFloat8Rounding), {}, {}});
    std::array<ValueId, kOperands> operands = operands_of(of);
    for (size_t o = 0; o < kOperands; ++o) {
      if (operands[o] == kNoValue) continue;
      bound.dtypes[o] = int32_t(graph.dtype(operands[o]));
      bound.counts[o] = int32_t(num_elements(graph.shape(operands[o])));
    }
  }
  return bounds;
}

constexpr const char* kScales = "float8_scales";

class Float8ScalesKernel : public Kernel {
 public:
  Float8ScalesKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), activations_(float8_bounds(node)),
        list_(context, {Piece{}}, kAddresses * int64_t(activations_.size())),
        bounds_(int64_t(activations_.size() * sizeof(Bound))),
        function_(context.compiler->add(kScales, float8_scales_source())) {
    std::vector<Bound> bounds = bounds_of(graph, node);
    TOKAMAK_CUDA(cudaMemcpyAsync(bounds_.get(), bounds.data(), bounds.size() * sizeof(Bound), cudaMemcpyHostToDevice,
                                 context.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> addresses;  // struct Activation in kernels/float8_scales.cu
    auto next = in.begin();
    for (size_t i = 0; i < activations_.size(); ++i) {
      for (ValueId operand : operands_of(activations_[i])) addresses.push_back(operand == kNoValue ? nullptr : *next++);
      addresses.insert(addresses.end(), {out[2 * i], out[2 * i + 1]});
    }
    list_.set_addresses(addresses);
    function_->launch(context_.queue(), {dim3(unsigned(activations_.size())), dim3(kThreads), 0},
                      static_cast<const void*>(bounds_.get()), list_.address_table());
  }

 private:
  static constexpr int64_t kAddresses = kOperands + 2;  // of one activation

  Context& context_;
  std::vector<Float8Bound> activations_;
  TensorList list_;  // of addresses alone
  DeviceBuffer bounds_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string float8_scales_source() { return "#include \"backend/cuda/kernels/float8_scales.cu\"\n"; }

KernelPtr make_float8_scales_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<Float8ScalesKernel>(context, graph, node);
}

void compile_float8_scales_ahead(Context& context, const Graph&, const Node&) {
  compile_list_ahead(context, kScales, float8_scales_source());
}

}  // namespace tokamak::cuda
