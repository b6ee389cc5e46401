// Many tensors in one launch (kernels/tensor_list.cuh): the pieces that blocks work on and the addresses, both on the
// device.
#pragma once

#include "backend/cuda/context.h"
#include "graph/graph.h"

#include <span>
#include <vector>

namespace tokamak::cuda {

/// As in kernels/tensor_list.cuh.
struct Piece {
  int32_t tensor;
  int32_t dtype;
  int64_t begin;
  int64_t count;
};

ValueTypes types_of(const Graph& graph, std::span<const ValueId> values);

/// Tensors cut into pieces of `length` elements (a multiple of 16).
std::vector<Piece> cut_into_pieces(std::span<const ValueType> tensors, int64_t length);

class TensorList {
 public:
  TensorList(Context& context, const std::vector<Piece>& pieces, int64_t addresses);

  /// Number of blocks to launch.
  unsigned pieces() const { return pieces_; }
  const void* piece_table() const { return piece_table_.get(); }
  const void* address_table() const { return address_table_.get(); }

  /// Makes the table hold these addresses; launches only when they are others than the last time. The launch may be
  /// recorded, and whoever replays it replays what reads the table with it.
  void set_addresses(std::span<const void* const> addresses);

 private:
  Context& context_;
  unsigned pieces_;
  DeviceBuffer piece_table_, address_table_;
  std::vector<const void*> known_;
  std::shared_ptr<DeviceFunction> write_;
};

/// Begins to compile a function of `source`, whose kernel has such a list, and what the list itself has.
void compile_list_ahead(Context& context, const std::string& function, const std::string& source);

/// The function `write_addresses`.
std::string addresses_source();

}  // namespace tokamak::cuda
