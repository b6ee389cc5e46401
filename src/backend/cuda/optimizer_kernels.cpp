// sum_squares and multi_adamw: over all tensors of a step in one launch.
#include "backend/cuda/optimizer_kernels.h"

#include "backend/cuda/kernels.h"
#include "backend/cuda/tensor_list.h"
#include "base/divide.h"
#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;            // as kernels/sum_squares.cu and kernels/multi_adamw.cu
constexpr int64_t kSumPiece = 32 << 10;  // elements of a block: few enough to fill the device evenly
constexpr int64_t kPartialBytes = 4;     // a block's sum
constexpr int64_t kUpdatePiece = 8 << 10;

int64_t num_sums(const Graph& graph, const Node& node) { return num_elements(graph.shape(node.outputs[0])); }

// Sums that a tensor has of its own; one where all have one together.
int64_t sums_of_tensor(const Node& node) { return node.attrs.get_int("pieces", 1); }

// Those of a sum follow each other, and are cut as if there were no other sum.
std::vector<Piece> sum_pieces(const Graph& graph, const Node& node) {
  ValueTypes types = types_of(graph, node.inputs);
  std::vector<Piece> pieces;
  for (size_t t = 0; t < types.size(); ++t) {
    ValueType of_sum{types[t].dtype, {num_elements(types[t].shape) / sums_of_tensor(node)}};
    for (int64_t sum = 0; sum < sums_of_tensor(node); ++sum)
      for (Piece piece : cut_into_pieces({&of_sum, 1}, kSumPiece)) {
        piece.tensor = int32_t(t);
        piece.begin += sum * of_sum.shape[0];
        pieces.push_back(piece);
      }
  }
  return pieces;
}

constexpr const char *kSumPieces = "sum_pieces", *kMultiAdamw = "multi_adamw";

std::string adamw_source_of(const Graph& graph, const Node& node) {
  return multi_adamw_source(node.attrs, graph.dtype(node.inputs[5]));
}

class SumSquaresKernel : public Kernel {
 public:
  SumSquaresKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), list_(context, sum_pieces(graph, node), int64_t(node.inputs.size())),
        sums_(unsigned(num_sums(graph, node))), sum_pieces_(context.compiler->add(kSumPieces, sum_squares_source())),
        sum_partials_(context.compiler->add("sum_partials", sum_squares_source())) {}

  int64_t workspace_bytes() const override { return int64_t(list_.pieces()) * kPartialBytes; }
  void use_workspace(void* at) override { partial_ = at; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    list_.set_addresses(in);
    sum_pieces_->launch(context_.queue(), {dim3(list_.pieces()), dim3(kThreads), 0}, list_.piece_table(),
                        list_.address_table(), partial_);
    sum_partials_->launch(context_.queue(), {dim3(sums_), dim3(kThreads), 0}, static_cast<const void*>(partial_),
                          int32_t(list_.pieces() / sums_), out[0]);
  }

 private:
  Context& context_;
  TensorList list_;
  unsigned sums_;
  std::shared_ptr<DeviceFunction> sum_pieces_, sum_partials_;
  void* partial_ = nullptr;
};

// Types of the gradients: the other operands have one type each, of all tensors.
ValueTypes gradient_types(const Graph& graph, const Node& node) {
  ValueTypes types;
  for (size_t i = 4; i < node.inputs.size(); i += 4) types.push_back(graph.type(node.inputs[i]));
  return types;
}

class MultiAdamwKernel : public Kernel {
 public:
  MultiAdamwKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), tensors_(node.attrs.get_ints("decayed").size()),
        list_(context, cut_into_pieces(gradient_types(graph, node), kUpdatePiece), int64_t(tensors_) * kOperands),
        decayed_(int64_t(tensors_) * 4), function_(context.compiler->add(kMultiAdamw, adamw_source_of(graph, node))) {
    std::vector<int32_t> decayed;
    for (int64_t d : node.attrs.get_ints("decayed")) decayed.push_back(d != 0);
    TOKAMAK_CUDA(
        cudaMemcpyAsync(decayed_.get(), decayed.data(), decayed.size() * 4, cudaMemcpyHostToDevice, context.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> addresses;
    for (size_t t = 0; t < tensors_; ++t) {
      addresses.insert(addresses.end(), &in[3 + 4 * t], &in[3 + 4 * t] + 4);
      addresses.insert(addresses.end(), &out[3 * t], &out[3 * t] + 3);
    }
    list_.set_addresses(addresses);
    function_->launch(context_.queue(), {dim3(list_.pieces()), dim3(kThreads), 0}, list_.piece_table(),
                      list_.address_table(), static_cast<const void*>(decayed_.get()), in[0], in[1], in[2]);
  }

 private:
  static constexpr int64_t kOperands = 7;  // of one tensor: struct Tensor in kernels/multi_adamw.cu
  Context& context_;
  size_t tensors_;
  TensorList list_;
  DeviceBuffer decayed_;
  std::shared_ptr<DeviceFunction> function_;
};

}  // namespace

std::string sum_squares_source() { return "#include \"backend/cuda/kernels/sum_squares.cu\"\n"; }

std::string multi_adamw_source(const Attrs& attrs, DType state) {
  std::string text = fmt::format("constexpr bool kLowState = {};\n", state == DType::kBF16);
  auto constant = [&](const char* name, double value) {
    text += fmt::format("constexpr float {} = {:.9e}f;\n", name, value);
  };
  double beta1 = attrs.get_double("beta1"), beta2 = attrs.get_double("beta2");
  constant("kBeta1", beta1);
  constant("kBeta2", beta2);
  constant("kNew1", 1 - beta1);  // in double: 1 - 0.999f is off by 1e-5
  constant("kNew2", 1 - beta2);
  constant("kLogBeta1", std::max(std::log(beta1), -1e30));
  constant("kLogBeta2", std::max(std::log(beta2), -1e30));
  constant("kEps", attrs.get_double("eps"));
  constant("kDecay", attrs.get_double("decay"));
  return text + "#include \"backend/cuda/kernels/multi_adamw.cu\"\n";
}

KernelPtr make_sum_squares_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<SumSquaresKernel>(context, graph, node);
}
void compile_sum_squares_ahead(Context& context, const Graph&, const Node&) {
  compile_list_ahead(context, kSumPieces, sum_squares_source());
}
int64_t sum_squares_scratch(const DeviceInfo&, const Graph& graph, const Node& node) {
  int64_t pieces = 0, sums = sums_of_tensor(node);  // as sum_pieces() lists them, for any size of model
  for (ValueId input : node.inputs) pieces += sums * ceil_div(num_elements(graph.shape(input)) / sums, kSumPiece);
  return pieces * kPartialBytes;
}
void compile_multi_adamw_ahead(Context& context, const Graph& graph, const Node& node) {
  compile_list_ahead(context, kMultiAdamw, adamw_source_of(graph, node));
}
KernelPtr make_multi_adamw_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<MultiAdamwKernel>(context, graph, node);
}

}  // namespace tokamak::cuda
