#include "data/int64_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kBufferedNumbers = 8192;

}  // namespace

Int64Log::Int64Log(const std::filesystem::path& path, const Int64LogState& from)
    : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666)),
      size_(from.size) {
  if (!fd_.is_open()) file_error("write", path_, errno);
  verify(from);
  if (::ftruncate(fd_.get(), off_t(size_ * int64_t(sizeof(int64_t)))) != 0) file_error("write", path_, errno);
}

void Int64Log::verify(const Int64LogState& from) {
  FileReader file(path_);
  int64_t bytes = from.size * int64_t(sizeof(int64_t));
  if (file.size() < bytes)
    user_error("[data] {}: expected at least {} bytes, got {}; the file is damaged", path_.string(), bytes,
               file.size());
  std::vector<std::byte> piece;
  for (int64_t at = 0; at < bytes; at += int64_t(piece.size())) {
    piece.resize(size_t(std::min(bytes - at, int64_t(kBufferedNumbers * sizeof(int64_t)))));
    file.read(at, piece);
    checksum_.update(piece);
  }
  std::string got = format_checksum(checksum_.digest());
  if (!from.checksum.empty() && got != from.checksum)
    user_error("[data] {}: expected the checksum {}, got {}; the file is damaged", path_.string(), from.checksum, got);
}

void Int64Log::append(int64_t number) {
  buffer_.push_back(number);
  ++size_;
  if (buffer_.size() >= kBufferedNumbers) flush();
}

void Int64Log::flush() {
  auto bytes = std::as_bytes(std::span(buffer_));
  checksum_.update(bytes);
  while (!bytes.empty()) {
    ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    bytes = bytes.subspan(size_t(count));
  }
  buffer_.clear();
}

Int64LogState Int64Log::sync() {
  flush();
  if (::fsync(fd_.get()) != 0 && errno != EINVAL) file_error("write", path_, errno);
  return {size_, format_checksum(checksum_.digest())};
}

std::span<const int64_t> Int64Log::view() {
  flush();
  mapped_ = MappedFile(path_);
  return {reinterpret_cast<const int64_t*>(mapped_.bytes().data()), size_t(size_)};
}

}  // namespace tokamak
