// Compressed streams of bytes. Which compression it is, a file's first bytes tell, so that pipes are understood too; a
// file named .gz, .zst and so on that begins otherwise is damaged. For examples see
// tests/data/sources/compression_test.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "data/sources/byte_stream.h"

namespace tokamak {

/// Opens the decompressed bytes of what `in` holds from its view on, to the end of the file; several streams may follow
/// each other. Memory is bounded and checksums are checked. UserErrors for damage and for a file that is cut short name
/// the place in the file.
struct Decompressor {
  std::unique_ptr<ByteStream> (*open)(ByteBuffer in) = nullptr;
  std::string_view missing = {};  // the package to install, where the library was absent at build time; then no `open`
};

extern const Decompressor bzip2_decompressor;
extern const Decompressor gzip_decompressor;
extern const Decompressor xz_decompressor;
extern const Decompressor zstd_decompressor;

/// What all of them have: the compressed bytes, and of their stream the name and the place.
class DecompressedBytes : public ByteStream {
 public:
  const std::string& name() const override { return in_.stream().name(); }
  int64_t bytes_read() const override { return in_.stream().bytes_read(); }
  int64_t total_bytes() const override { return in_.stream().total_bytes(); }

 protected:
  explicit DecompressedBytes(ByteBuffer in) : in_(std::move(in)) {}
  ByteBuffer in_;
};

/// The decompressed bytes of a stream, or its bytes as they are if it is not compressed.
std::unique_ptr<ByteStream> decompress(std::unique_ptr<ByteStream> stream);

/// Whether what a file begins with is that of a compressed one.
bool is_compressed(std::string_view begin);

/// A file's name without an ending that only says that it is compressed.
std::string_view without_compression_ending(std::string_view name);

/// Whether a file's name has such an ending.
bool is_named_compressed(const std::filesystem::path& path);

/// Throws the UserError for damage at a place of the compressed file.
[[noreturn]] void damaged_error(const ByteBuffer& in, std::string_view compression, std::string_view reason);

}  // namespace tokamak
