// What a rank writes of a checkpoint, copied to host memory, so that the steps behind it may change the state while it
// is written. Tests: tests/mesh/background_save_test.cpp.
#pragma once

#include "checkpoint/state_slices.h"

namespace tokamak {

class StateCopy {
 public:
  /// Of the tensors that are in the store then. Both must outlive it.
  StateCopy(const TensorStore& store, Backend& backend);

  /// Of host memory, which the first take() takes.
  int64_t bytes() const { return bytes_; }

  /// Copies what the store holds now, and waits for it.
  void take();

  const std::vector<StateSlice>& slices() const { return slices_; }
  /// What was taken last. For any thread.
  ReadSlice reader() const;

 private:
  const NamedType& tensor_of(const StateSlice& slice) const { return files_[slice.file].tensors[slice.tensor]; }

  const TensorStore& store_;
  Backend& backend_;
  std::vector<StateFile> files_;
  std::vector<StateSlice> slices_;
  std::vector<std::unique_ptr<Readback>> read_;     // of the slices; a GPU's are in pinned memory
  std::vector<std::span<const std::byte>> copied_;  // their bytes
  int64_t bytes_ = 0;
};

}  // namespace tokamak
