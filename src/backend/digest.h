// The digest of what tensors hold, bit by bit: the sum of element_digest() over their elements. Tests:
// tests/exec/parameter_digest_test.cpp.
#pragma once

#include "graph/part_runs.h"
#include "ops/element_digest.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tokamak {

class Kernel;

/// Elements of one tensor that lie side by side in memory, and in the whole tensor in rows of the same length.
struct DigestPiece {
  const void* from = nullptr;  // in the backend's memory
  uint64_t salt = 0;           // of the tensor
  int64_t whole = 0;           // place of the first row in the whole tensor, in elements
  int64_t stride = 0;          // from a row to the next there
  int32_t row = 0;             // elements of a row
  int32_t count = 0;           // elements; the last row may be shorter
  int32_t element_bytes = 4;   // 1, 2 or 4
  int32_t unused = 0;
};

/// A tensor's salt, by its name.
uint64_t digest_salt(std::string_view name);

/// A share of a tensor, which lies at `data`, in pieces of a size that keeps a block of threads busy.
std::vector<DigestPiece> digest_pieces(const void* data, int64_t element_bytes, uint64_t salt,
                                       const std::vector<PartRun>& share);

/// A kernel without inputs that writes the digest of the pieces (8 bytes), which are in the host's memory.
std::unique_ptr<Kernel> make_host_digest(std::vector<DigestPiece> pieces);

}  // namespace tokamak
