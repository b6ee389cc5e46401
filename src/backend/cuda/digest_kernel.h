// The kernel that takes the digest of tensors' bits (backend/digest.h); tests compile its device code without a GPU.
#pragma once

#include "backend/backend.h"

#include <string>

namespace tokamak::cuda {

struct Context;

/// Writes 8 bytes. The table of pieces is on the device for good.
std::unique_ptr<Kernel> make_digest_kernel(Context& context, const std::vector<DigestPiece>& pieces);

/// The function `digest`.
std::string digest_source();

}  // namespace tokamak::cuda
