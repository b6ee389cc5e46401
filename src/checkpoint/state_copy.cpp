#include "checkpoint/state_copy.h"

#include "base/divide.h"

#include <utility>

namespace tokamak {
namespace {

// A system that gives memory for a device's copies holds up the device's other calls meanwhile: not for long, then.
constexpr int64_t kPieceBytes = int64_t(64) << 20;
constexpr int64_t kSliceAlignment = 256;

}  // namespace

StateCopy::StateCopy(const TensorStore& store, Backend& backend, HostCopies& copies)
    : store_(store), backend_(backend), copies_(copies), files_(state_files(store)),
      slices_(owned_slices(store, files_)) {
  place_slices();
}

// Side by side in pieces; a slice that is larger has a piece of its own.
void StateCopy::place_slices() {
  for (const StateSlice& slice : slices_) {
    int64_t bytes = bytes_of(slice), taken = round_up(bytes, kSliceAlignment);
    if (piece_bytes_.empty() || piece_bytes_.back() + taken > kPieceBytes) piece_bytes_.push_back(0);
    places_.push_back({piece_bytes_.size() - 1, piece_bytes_.back()});
    piece_bytes_.back() += taken;
    bytes_ += bytes;
  }
}

bool StateCopy::reserve() {
  for (int64_t bytes : piece_bytes_) {
    pieces_.push_back(backend_.allocate_host(bytes));
    if (pieces_.back()) continue;
    pieces_.clear();
    return false;
  }
  return true;
}

CopyMemory StateCopy::release_memory() {
  CopyMemory released{piece_bytes_, std::move(pieces_)};
  pieces_.clear();
  return released;
}

bool StateCopy::use_memory(CopyMemory memory) {
  if (memory.bytes != piece_bytes_ || memory.pieces.size() != piece_bytes_.size()) return false;
  pieces_ = std::move(memory.pieces);
  return true;
}

void StateCopy::begin() {
  copies_.begin();
  for (size_t i = 0; i < slices_.size(); ++i) {
    const NamedType& tensor = tensor_of(slices_[i]);
    auto* from = static_cast<const std::byte*>(store_.data(tensor.name));
    copies_.copy(copied(i), from + slices_[i].begin * dtype_bytes(tensor.type.dtype), bytes_of(slices_[i]));
  }
  copies_.end();
}

int64_t StateCopy::bytes_of(const StateSlice& slice) const {
  return slice.count * dtype_bytes(tensor_of(slice).type.dtype);
}

std::byte* StateCopy::copied(size_t slice) const {
  return static_cast<std::byte*>(pieces_.at(places_[slice].piece)->data()) + places_[slice].at;
}

ReadSlice StateCopy::reader() const {
  return [this](const StateSlice& slice, int64_t at, int64_t count) {
    int64_t size = dtype_bytes(tensor_of(slice).type.dtype);
    const std::byte* first = copied(size_t(&slice - slices_.data())) + at * size;
    return std::span(first, size_t(count * size));
  };
}

}  // namespace tokamak
