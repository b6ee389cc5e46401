// float8_weights: over all weights in two launches.
#include "backend/cuda/float8_weights_kernel.h"

#include "backend/cuda/kernels.h"
#include "backend/cuda/tensor_list.h"
#include "base/divide.h"
#include "ops/float8_weights.h"

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;         // as kernels/float8_weights.cu
constexpr int64_t kSide = 128;        // of a tile, in elements
constexpr int64_t kPiece = 32 << 10;  // elements of a block that looks for the largest

// As in kernels/float8_weights.cu.
struct Place {
  int32_t weight, dtype;
  int32_t row, column;
  int32_t rows, columns;
  int32_t first_piece, pieces;
};

ValueTypes weight_types(const Graph& graph, const Node& node) {
  ValueTypes types;
  for (ValueId input : node.inputs) types.push_back(graph.type(input));
  return types;
}

int64_t num_pieces(const ValueType& type) { return ceil_div(num_elements(type.shape), kPiece); }

std::vector<Place> cut_into_tiles(const ValueTypes& types) {
  std::vector<Place> places;
  int64_t first_piece = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    int64_t rows = types[i].shape[0], columns = types[i].shape[1], pieces = num_pieces(types[i]);
    for (int64_t row = 0; row < rows; row += kSide)
      for (int64_t column = 0; column < columns; column += kSide)
        places.push_back({int32_t(i), int32_t(types[i].dtype), int32_t(row), int32_t(column), int32_t(rows),
                          int32_t(columns), int32_t(first_piece), int32_t(pieces)});
    first_piece += pieces;
  }
  return places;
}

class Float8WeightsKernel : public Kernel {
 public:
  Float8WeightsKernel(Context& context, const Graph& graph, const Node& node)
      : Float8WeightsKernel(context, node, weight_types(graph, node), cut_into_tiles(weight_types(graph, node))) {}

  int64_t workspace_bytes() const override { return int64_t(list_.pieces()) * int64_t(sizeof(float)); }
  void use_workspace(void* at) override { largest_ = at; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    std::vector<const void*> addresses;  // struct Weight in kernels/float8_weights.cu
    auto next = out.begin();
    for (size_t i = 0; i < in.size(); ++i) {
      const void* plain = stored_[i].plain ? *next++ : nullptr;
      const void* turned = stored_[i].turned ? *next++ : nullptr;
      addresses.insert(addresses.end(), {in[i], plain, turned, *next++});
    }
    list_.set_addresses(addresses);
    find_->launch(context_.queue(), {dim3(list_.pieces()), dim3(kThreads), 0}, list_.piece_table(),
                  list_.address_table(), largest_);
    cast_->launch(context_.queue(), {dim3(tiles_), dim3(kThreads), 0}, static_cast<const void*>(places_.get()),
                  list_.address_table(), static_cast<const void*>(largest_));
  }

 private:
  static constexpr int64_t kAddresses = 4;  // of one weight

  Float8WeightsKernel(Context& context, const Node& node, const ValueTypes& types, const std::vector<Place>& places)
      : context_(context), stored_(stored_copies(node)),
        list_(context, cut_into_pieces(types, kPiece), kAddresses * int64_t(types.size())),
        tiles_(unsigned(places.size())), places_(int64_t(places.size() * sizeof(Place))),
        find_(context.compiler->add("largest_of_weights", float8_weights_source())),
        cast_(context.compiler->add("cast_weights", float8_weights_source())) {
    TOKAMAK_CUDA(cudaMemcpyAsync(places_.get(), places.data(), places.size() * sizeof(Place), cudaMemcpyHostToDevice,
                                 context.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
  }

  Context& context_;
  std::vector<StoredCopies> stored_;
  TensorList list_;
  unsigned tiles_;
  DeviceBuffer places_;
  std::shared_ptr<DeviceFunction> find_, cast_;
  void* largest_ = nullptr;
};

}  // namespace

std::string float8_weights_source() { return "#include \"backend/cuda/kernels/float8_weights.cu\"\n"; }

bool has_float8_weights(const DeviceInfo& info, const Graph&, const Node&) {
  return 10 * info.major + info.minor >= 89;
}

KernelPtr make_float8_weights_kernel(Context& context, const Graph& graph, const Node& node) {
  if (!has_float8_weights(context.info, graph, node)) return make_reference_kernel(context, graph, node);
  return std::make_unique<Float8WeightsKernel>(context, graph, node);
}

int64_t float8_weights_scratch(const DeviceInfo&, const Graph& graph, const Node& node) {
  int64_t pieces = 0;
  for (ValueId input : node.inputs) pieces += num_pieces(graph.type(input));
  return pieces * int64_t(sizeof(float));
}

}  // namespace tokamak::cuda
