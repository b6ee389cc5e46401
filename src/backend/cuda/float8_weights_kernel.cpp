// float8_weights: over all weights in two launches, and one for the longest columns.
#include "backend/cuda/float8_weights_kernel.h"

#include "backend/cuda/kernels.h"
#include "backend/cuda/tensor_list.h"
#include "base/divide.h"
#include "ops/float8_weights.h"

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256;          // as kernels/float8_weights.cu
constexpr int64_t kSide = 128;         // of a tile, in elements
constexpr int64_t kPiece = 32 << 10;   // elements of a block that looks for the largest
constexpr int64_t kSumsAlignment = 4;  // floats, which are read together

// As in kernels/float8_weights.cu.
struct Place {
  int32_t weight, dtype;
  int32_t row, column;
  int32_t rows, columns;
  int32_t first_piece, pieces;
};

int64_t num_pieces(const ValueType& type) { return ceil_div(num_elements(type.shape), kPiece); }

// Sums of squares of one weight: of each column in each row of tiles. Aligned as the sums of the next need it.
int64_t num_sums(const ValueType& type) { return ceil_div(type.shape[0], kSide) * type.shape[1]; }

int64_t all_pieces(const ValueTypes& types) {
  int64_t pieces = 0;
  for (const ValueType& type : types) pieces += num_pieces(type);
  return round_up(pieces, kSumsAlignment);
}

// Tiles of all weights, and behind them the first ones of those whose longest column is asked for.
struct Places {
  std::vector<Place> all;
  unsigned tiles = 0, longest = 0;
};

Places cut_into_tiles(const ValueTypes& types, const std::vector<StoredCopies>& stored) {
  Places places;
  std::vector<Place> longest;
  int64_t first_piece = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    int64_t rows = types[i].shape[0], columns = types[i].shape[1], pieces = num_pieces(types[i]);
    Place place{int32_t(i),           int32_t(types[i].dtype), 0, 0, int32_t(rows), int32_t(columns),
                int32_t(first_piece), int32_t(pieces)};
    if (stored[i].longest) longest.push_back(place);
    for (int64_t row = 0; row < rows; row += kSide)
      for (int64_t column = 0; column < columns; column += kSide) {
        place.row = int32_t(row), place.column = int32_t(column);
        places.all.push_back(place);
      }
    first_piece += pieces;
  }
  places.tiles = unsigned(places.all.size()), places.longest = unsigned(longest.size());
  places.all.insert(places.all.end(), longest.begin(), longest.end());
  return places;
}

// Floats: the largest of each piece, and sums of squares.
int64_t scratch_floats(const ValueTypes& types, const std::vector<StoredCopies>& stored) {
  int64_t floats = all_pieces(types);
  for (size_t i = 0; i < types.size(); ++i)
    if (stored[i].longest) floats += num_sums(types[i]);
  return floats;
}

constexpr const char* kFind = "largest_of_weights";

class Float8WeightsKernel : public Kernel {
 public:
  Float8WeightsKernel(Context& context, const Graph& graph, const Node& node)
      : Float8WeightsKernel(context, node, types_of(graph, node.inputs),
                            cut_into_tiles(types_of(graph, node.inputs), stored_copies(node))) {}

  int64_t workspace_bytes() const override { return scratch_floats(types_, stored_) * int64_t(sizeof(float)); }
  void use_workspace(void* at) override { scratch_ = static_cast<float*>(at); }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    set_addresses(in, out);
    const void *places = places_.get(), *largest = scratch_;
    find_->launch(context_.queue(), {dim3(list_.pieces()), dim3(kThreads), 0}, list_.piece_table(),
                  list_.address_table(), static_cast<void*>(scratch_));
    cast_->launch(context_.queue(), {dim3(tiles_), dim3(kThreads), 0}, places, list_.address_table(), largest);
    if (longest_ == 0) return;
    places = static_cast<const Place*>(places) + tiles_;
    columns_->launch(context_.queue(), {dim3(longest_), dim3(kThreads), 0}, places, list_.address_table());
  }

 private:
  static constexpr int64_t kAddresses = 6;  // of one weight

  Float8WeightsKernel(Context& context, const Node& node, ValueTypes types, const Places& places)
      : context_(context), types_(std::move(types)), stored_(stored_copies(node)),
        list_(context, cut_into_pieces(types_, kPiece), kAddresses * int64_t(types_.size())), tiles_(places.tiles),
        longest_(places.longest), places_(int64_t(places.all.size() * sizeof(Place))),
        find_(context.compiler->add(kFind, float8_weights_source())),
        cast_(context.compiler->add("cast_weights", float8_weights_source())),
        columns_(context.compiler->add("longest_columns", float8_weights_source())) {
    TOKAMAK_CUDA(cudaMemcpyAsync(places_.get(), places.all.data(), places.all.size() * sizeof(Place),
                                 cudaMemcpyHostToDevice, context.queue()));
    TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
  }

  // struct Weight in kernels/float8_weights.cu.
  void set_addresses(std::span<const void* const> in, std::span<void* const> out) {
    std::vector<const void*> addresses;
    auto next = out.begin();
    const float* squares = scratch_ + all_pieces(types_);
    for (size_t i = 0; i < in.size(); ++i) {
      const void* plain = stored_[i].plain ? *next++ : nullptr;
      const void* turned = stored_[i].turned ? *next++ : nullptr;
      const void* scale = *next++;
      bool longest = stored_[i].longest;
      addresses.insert(addresses.end(),
                       {in[i], plain, turned, scale, longest ? *next++ : nullptr, longest ? squares : nullptr});
      if (longest) squares += num_sums(types_[i]);
    }
    list_.set_addresses(addresses);
  }

  Context& context_;
  ValueTypes types_;
  std::vector<StoredCopies> stored_;
  TensorList list_;
  unsigned tiles_, longest_;
  DeviceBuffer places_;
  std::shared_ptr<DeviceFunction> find_, cast_, columns_;
  float* scratch_ = nullptr;
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

void compile_float8_weights_ahead(Context& context, const Graph& graph, const Node& node) {
  if (has_float8_weights(context.info, graph, node)) compile_list_ahead(context, kFind, float8_weights_source());
}

int64_t float8_weights_scratch(const DeviceInfo&, const Graph& graph, const Node& node) {
  return scratch_floats(types_of(graph, node.inputs), stored_copies(node)) * int64_t(sizeof(float));
}

}  // namespace tokamak::cuda
