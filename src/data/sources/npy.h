// NumPy's .npy files with one dimension of integers, versions 1 to 3 of the format (numpy.lib.format in NumPy's
// manual). Tests: tests/data/sources/npy_test.cpp.
#pragma once

#include <span>
#include <string_view>

#include "data/sources/byte_stream.h"
#include "data/sources/file_tokens.h"

namespace tokamak {

struct NpyHeader {
  TokenType type;
  TokenRun run;
};

/// All that parse_npy_header() looks at: the headers of arrays of integers are far smaller.
inline constexpr int64_t kNpyHeadBytes = 4096;

/// Reads the header from the first kNpyHeadBytes (or all) of a file; `name` is for messages. UserErrors: no .npy, an
/// array of another kind than 1-D little-endian integers.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view name);

/// Reads the header of the .npy that lies in `file` from byte `offset` on and has `bytes`; the run is that in `file`.
/// A UserError also for a length that does not fit the shape.
NpyHeader read_npy_header(const FileReader& file, int64_t offset, int64_t bytes, std::string_view name);

/// A .npy that is gone through once, such as a member of an archive, as one document.
std::unique_ptr<Source> read_npy(std::unique_ptr<ByteStream> stream, const SourceOptions& options);

}  // namespace tokamak
