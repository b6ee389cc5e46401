#include "backend/cuda/tensor_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace tokamak::cuda {
namespace {

constexpr const char* kWriteAddresses = "write_addresses";
constexpr int kAddresses = 256;  // of one launch, whose arguments have to stay below 4 KiB

struct Addresses {
  const void* at[kAddresses];
};

}  // namespace

ValueTypes types_of(const Graph& graph, std::span<const ValueId> values) {
  ValueTypes types;
  for (ValueId value : values) types.push_back(graph.type(value));
  return types;
}

std::vector<Piece> cut_into_pieces(std::span<const ValueType> tensors, int64_t length) {
  std::vector<Piece> pieces;
  for (size_t t = 0; t < tensors.size(); ++t) {
    int64_t n = num_elements(tensors[t].shape);
    for (int64_t at = 0; at < n; at += length)
      pieces.push_back({int32_t(t), int32_t(tensors[t].dtype), at, std::min(length, n - at)});
  }
  return pieces;
}

std::string addresses_source() {
  return fmt::format("constexpr int kAddresses = {};\n#include \"backend/cuda/kernels/addresses.cu\"\n", kAddresses);
}

void compile_list_ahead(Context& context, const std::string& function, const std::string& source) {
  context.compiler->add(kWriteAddresses, addresses_source());
  context.compiler->add(function, source);
}

TensorList::TensorList(Context& context, const std::vector<Piece>& pieces, int64_t addresses)
    : context_(context), pieces_(unsigned(pieces.size())), piece_table_(int64_t(pieces.size() * sizeof(Piece))),
      address_table_(addresses * int64_t(sizeof(void*))),
      write_(context.compiler->add(kWriteAddresses, addresses_source())) {
  TOKAMAK_CUDA(cudaMemcpyAsync(piece_table_.get(), pieces.data(), pieces.size() * sizeof(Piece), cudaMemcpyHostToDevice,
                               context.queue()));
  TOKAMAK_CUDA(cudaStreamSynchronize(context.queue()));
}

void TensorList::set_addresses(std::span<const void* const> addresses) {
  if (std::equal(addresses.begin(), addresses.end(), known_.begin(), known_.end())) return;
  known_.assign(addresses.begin(), addresses.end());
  auto* table = static_cast<uint64_t*>(address_table_.get());
  for (size_t at = 0; at < addresses.size(); at += kAddresses) {
    size_t count = std::min(addresses.size() - at, size_t(kAddresses));
    Addresses some{};
    std::copy_n(addresses.begin() + int64_t(at), count, some.at);
    write_->launch(context_.queue(), {dim3(1), dim3(kAddresses), 0}, some, table + at, int32_t(count));
  }
}

}  // namespace tokamak::cuda
