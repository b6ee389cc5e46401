// Bytes of a file, a pipe or something inside of them, from the beginning to the end, in bounded memory.
// For examples see tests/data/sources/compression_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/open_source.h"

namespace tokamak {

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// Writes the next bytes to the beginning of `out` (not empty) and says how many; 0 only at the end. UserErrors for
  /// what cannot be read, is damaged or cut short.
  virtual size_t read(std::span<char> out) = 0;

  /// For messages: the file, or the archive and its member.
  virtual const std::string& name() const = 0;

  /// Bytes of the file on the disk that were read so far and in all (0: not known).
  virtual int64_t bytes_read() const = 0;
  virtual int64_t total_bytes() const = 0;
};

/// What a file or standard input ("-") holds, decompressed if it is compressed (see compression.h).
std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& path, const SourceOptions& options);

/// The bytes of a stream that were read and not yet used.
class ByteBuffer {
 public:
  explicit ByteBuffer(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  std::string_view view() const { return std::string_view(bytes_).substr(begin_, end_ - begin_); }

  /// Reads more, behind what is there; false at the end. Invalidates earlier views.
  bool fill();

  /// Reads until the view has `bytes` or the stream ends.
  void hold(size_t bytes) {
    while (view().size() < bytes && fill()) continue;
  }

  /// Drops the first bytes of the view, which stays valid.
  void consume(size_t count) {
    begin_ += count;
    position_ += int64_t(count);
  }

  /// Bytes consumed so far: where the view begins in the stream.
  int64_t position() const { return position_; }

  const ByteStream& stream() const { return *stream_; }

 private:
  std::unique_ptr<ByteStream> stream_;
  std::string bytes_;
  size_t begin_ = 0, end_ = 0;
  int64_t position_ = 0;
  bool ended_ = false;
};

/// What is left in a buffer and after it, as a stream.
std::unique_ptr<ByteStream> rest_of(ByteBuffer buffer);

}  // namespace tokamak
