// NumPy's .npy files with one dimension of integers, versions 1 to 3 of the format (numpy.lib.format in NumPy's
// manual). Tests: tests/data/sources/npy_test.cpp.
#pragma once

#include <span>
#include <string_view>

#include "data/sources/file_tokens.h"

namespace tokamak {

struct NpyHeader {
  TokenType type;
  TokenRun run;
};

/// All that parse_npy_header() looks at: the headers of arrays of integers are far smaller.
inline constexpr int64_t kNpyHeadBytes = 4096;

/// Reads the header from the first kNpyHeadBytes (or all) of a file of `file_bytes`; `name` is for messages.
/// UserErrors: no .npy, an array of another kind than 1-D little-endian integers, a length that does not fit the shape.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, int64_t file_bytes, std::string_view name);

/// Reads the header of the .npy that lies in `file` from byte `offset` on and has `bytes`; the run is that in `file`.
NpyHeader read_npy_header(const FileReader& file, int64_t offset, int64_t bytes, std::string_view name);

}  // namespace tokamak
