#include "checkpoint/state_copy.h"

namespace tokamak {

StateCopy::StateCopy(const TensorStore& store, Backend& backend)
    : store_(store), backend_(backend), files_(state_files(store)), slices_(owned_slices(store, files_)) {
  for (const StateSlice& slice : slices_) bytes_ += slice.count * dtype_bytes(tensor_of(slice).type.dtype);
}

// All are under way before the first is waited for.
void StateCopy::take() {
  read_.clear();  // its memory is there for the new ones
  copied_.clear();
  for (const StateSlice& slice : slices_) {
    const NamedType& tensor = tensor_of(slice);
    int64_t size = dtype_bytes(tensor.type.dtype);
    auto* from = static_cast<const std::byte*>(store_.data(tensor.name)) + slice.begin * size;
    read_.push_back(backend_.read_later(from, slice.count * size));
  }
  for (const std::unique_ptr<Readback>& read : read_) copied_.push_back(read->wait());
}

ReadSlice StateCopy::reader() const {
  return [this](const StateSlice& slice, int64_t at, int64_t count) {
    int64_t size = dtype_bytes(tensor_of(slice).type.dtype);
    return copied_[size_t(&slice - slices_.data())].subspan(size_t(at * size), size_t(count * size));
  };
}

}  // namespace tokamak
