// The digest of all parameters of a run: the same whatever the mesh and however ranks share them, where their bits are.
// Tests: tests/exec/parameter_digest_test.cpp, tests/mesh/digest_test.cpp.
#pragma once

#include "backend/backend.h"
#include "exec/tensor_store.h"

namespace tokamak {

class ParameterDigest {
 public:
  /// Of the store's parameters, where they lie now. All must outlive it.
  ParameterDigest(const TensorStore& store, Backend& backend, const MeshRanks* ranks);

  /// As they are when the work so far is done; does not wait on a backend with a queue. All ranks call it, in the same
  /// order as their other calls of the world's communicator. sum() makes the digest of its bytes, on every rank.
  std::unique_ptr<Readback> take();
  static uint64_t sum(std::span<const std::byte> of_ranks);

 private:
  Backend& backend_;
  const MeshRanks* ranks_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Memory> of_ranks_;
};

}  // namespace tokamak
