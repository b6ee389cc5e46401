#include "base/frames.h"

#include <cstdint>

#include "base/error.h"

namespace tokamak {
namespace {

constexpr size_t kLengthBytes = 4;

void put_length(std::string& out, size_t length) {
  for (size_t i = 0; i < kLengthBytes; ++i) out += char(length >> (8 * i) & 0xff);
}

size_t get_length(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= size_t(uint8_t(bytes[i])) << (8 * i);
  return length;
}

}  // namespace

std::string encode_frame(const Frame& texts) {
  std::string body;
  for (const std::string& text : texts) {
    TOKAMAK_CHECK(text.size() < size_t(1) << 31, "a text of {} bytes", text.size());
    put_length(body, text.size());
    body += text;
  }
  TOKAMAK_CHECK(body.size() < size_t(1) << 31, "a frame of {} bytes", body.size());
  std::string frame;
  put_length(frame, body.size());
  return frame + body;
}

std::optional<Frame> FrameReader::next() {
  if (buffer_.size() < kLengthBytes) return std::nullopt;
  size_t length = get_length(buffer_);
  if (length > max_bytes_)
    user_error("[rendezvous] expected a message of at most {} bytes, got one of {}", max_bytes_, length);
  if (buffer_.size() - kLengthBytes < length) return std::nullopt;
  std::string_view body = std::string_view(buffer_).substr(kLengthBytes, length);
  Frame texts;
  while (!body.empty()) {
    size_t text = body.size() < kLengthBytes ? body.size() : get_length(body);
    if (body.size() < kLengthBytes || text > body.size() - kLengthBytes)
      user_error("[rendezvous] expected a message, got bytes that are none");
    texts.emplace_back(body.substr(kLengthBytes, text));
    body.remove_prefix(kLengthBytes + text);
  }
  buffer_.erase(0, kLengthBytes + length);
  return texts;
}

}  // namespace tokamak
