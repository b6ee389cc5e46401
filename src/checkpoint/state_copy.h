// What a rank writes of a checkpoint, copied to host memory, so that the steps behind it may change the state while it
// is written. Tests: tests/mesh/background_save_test.cpp.
#pragma once

#include "checkpoint/state_slices.h"

namespace tokamak {

/// The memory of a copy, which may outlive it.
struct CopyMemory {
  std::vector<int64_t> bytes;  // of the pieces
  std::vector<std::unique_ptr<Memory>> pieces;
};

class StateCopy {
 public:
  /// Of the tensors that are in the store then. `copies` are those of this state alone; store, backend and copies must
  /// outlive it.
  StateCopy(const TensorStore& store, Backend& backend, HostCopies& copies);

  /// Of host memory, for as long as this lives.
  int64_t bytes() const { return bytes_; }

  /// Takes the memory, on any thread of the backend. False: there is not enough, and it has none.
  bool reserve();
  /// Gives the memory away, for a state of the same size; nobody reads or writes the copy any more.
  CopyMemory release_memory();
  /// Takes such memory in place of some of its own. False: it is of another size, and is given back.
  bool use_memory(CopyMemory memory);

  /// Asks for copies of what the store holds when all that was asked for so far is done; there is memory for them.
  void begin();
  /// Until they are there.
  void wait() { copies_.wait(); }

  const std::vector<StateSlice>& slices() const { return slices_; }
  /// What was copied last. For any thread, after wait().
  ReadSlice reader() const;

 private:
  struct Place {
    size_t piece = 0;  // of the memory
    int64_t at = 0;    // byte in it
  };

  void place_slices();
  const NamedType& tensor_of(const StateSlice& slice) const { return files_[slice.file].tensors[slice.tensor]; }
  int64_t bytes_of(const StateSlice& slice) const;
  std::byte* copied(size_t slice) const;

  const TensorStore& store_;
  Backend& backend_;
  HostCopies& copies_;
  std::vector<StateFile> files_;
  std::vector<StateSlice> slices_;
  std::vector<Place> places_;         // of the slices
  std::vector<int64_t> piece_bytes_;  // of the memory
  std::vector<std::unique_ptr<Memory>> pieces_;
  int64_t bytes_ = 0;
};

}  // namespace tokamak
