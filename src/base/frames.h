// Messages of several texts over a stream of bytes: the length of all in four bytes, then each text after its own
// length, all little-endian. Tests: tests/base/frames_test.cpp; on random bytes tests/fuzz/frames_fuzz.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

using Frame = std::vector<std::string>;

std::string encode_frame(const Frame& texts);

/// Takes bytes as they come and gives out whole frames.
class FrameReader {
 public:
  explicit FrameReader(size_t max_bytes) : max_bytes_(max_bytes) {}

  void set_max_bytes(size_t max_bytes) { max_bytes_ = max_bytes; }
  void append(std::string_view bytes) { buffer_ += bytes; }
  /// The next frame if it is there whole. A UserError when the bytes are none, or one of more than max_bytes.
  std::optional<Frame> next();

 private:
  size_t max_bytes_;
  std::string buffer_;
};

}  // namespace tokamak
