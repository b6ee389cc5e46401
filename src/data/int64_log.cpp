#include "data/int64_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kBufferedNumbers = 8192;

}  // namespace

Int64Log::Int64Log(const std::filesystem::path& path, int64_t size)
    : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)), size_(size) {
  if (!fd_.is_open()) file_error("write", path_, errno);
  off_t bytes = off_t(size * int64_t(sizeof(int64_t)));
  off_t end = ::lseek(fd_.get(), 0, SEEK_END);
  if (end < 0) file_error("read", path_, errno);
  if (end < bytes)
    user_error("[data] {}: expected at least {} bytes, got {}; the file was damaged: remove it", path_.string(), bytes,
               end);
  if (::ftruncate(fd_.get(), bytes) != 0) file_error("write", path_, errno);
}

void Int64Log::append(int64_t number) {
  buffer_.push_back(number);
  ++size_;
  if (buffer_.size() >= kBufferedNumbers) flush();
}

void Int64Log::flush() {
  auto bytes = std::as_bytes(std::span(buffer_));
  while (!bytes.empty()) {
    ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    bytes = bytes.subspan(size_t(count));
  }
  buffer_.clear();
}

void Int64Log::sync() {
  flush();
  if (::fsync(fd_.get()) != 0 && errno != EINVAL) file_error("write", path_, errno);
}

std::span<const int64_t> Int64Log::view() {
  flush();
  mapped_ = MappedFile(path_);
  return {reinterpret_cast<const int64_t*>(mapped_.bytes().data()), size_t(size_)};
}

}  // namespace tokamak
