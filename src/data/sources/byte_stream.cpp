#include "data/sources/byte_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

class FileBytes : public ByteStream {
 public:
  FileBytes(const fs::path& path, std::function<bool()> stop)
      : name_(path.string()), file_(open_to_read(path)), fd_(file_.get()), stop_(std::move(stop)) {
    struct stat info;
    if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) total_ = info.st_size;
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  /// Of a descriptor that belongs to someone else.
  FileBytes(int fd, std::function<bool()> stop) : name_("standard input"), fd_(fd), stop_(std::move(stop)) {
    refuse_device(fd, name_);
  }

  size_t read(std::span<char> out) override {
    wait();
    ssize_t count;
    do count = ::read(fd_, out.data(), out.size());
    while (count < 0 && errno == EINTR);
    if (count < 0) file_error("read", name_, errno);
    read_ += count;
    return size_t(count);
  }

  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override { return read_; }
  int64_t total_bytes() const override { return total_; }

 private:
  // A read from a pipe may wait for ever, and goes on waiting after a signal that only sets a flag.
  void wait() const {
    if (!stop_ || total_ > 0) return;
    constexpr int kMilliseconds = 100;
    for (pollfd poll = {fd_, POLLIN, 0}; ::poll(&poll, 1, kMilliseconds) <= 0;)
      if (stop_()) user_error("[data] stopped while waiting for {}", name_);
  }

  std::string name_;
  FileDescriptor file_;
  int fd_ = -1;
  std::function<bool()> stop_;
  int64_t read_ = 0, total_ = 0;
};

/// What is left in a buffer and after it.
class BufferedBytes : public ByteStream {
 public:
  explicit BufferedBytes(ByteBuffer buffer) : buffer_(std::move(buffer)) {}

  size_t read(std::span<char> out) override {
    if (buffer_.view().empty()) buffer_.fill();
    size_t count = std::min(out.size(), buffer_.view().size());
    std::memcpy(out.data(), buffer_.view().data(), count);
    buffer_.consume(count);
    return count;
  }

  const std::string& name() const override { return buffer_.stream().name(); }
  int64_t bytes_read() const override { return buffer_.stream().bytes_read(); }
  int64_t total_bytes() const override { return buffer_.stream().total_bytes(); }

 private:
  ByteBuffer buffer_;
};

constexpr size_t kReadBytes = size_t(64) << 10;
constexpr size_t kLeastReadBytes = size_t(4) << 10;

/// How large a buffer begins: a small file, of which there may be millions, needs no more than what it has.
size_t first_bytes(const ByteStream& stream) {
  int64_t total = stream.total_bytes();
  return total > 0 && total < int64_t(kReadBytes) ? size_t(total) + kLeastReadBytes : kReadBytes;
}

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const fs::path& path, const SourceOptions& options) {
  if (path == "-") return decompress(std::make_unique<FileBytes>(options.stdin_fd, options.stop));
  return decompress(std::make_unique<FileBytes>(path, options.stop));
}

std::unique_ptr<ByteStream> rest_of(ByteBuffer buffer) { return std::make_unique<BufferedBytes>(std::move(buffer)); }

bool ByteBuffer::fill() {
  if (ended_) return false;
  if (begin_ > 0 && begin_ >= end_ - begin_) {  // so that no byte is moved more often than one is read
    std::copy(bytes_.begin() + std::ptrdiff_t(begin_), bytes_.begin() + std::ptrdiff_t(end_), bytes_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (bytes_.size() - end_ < kLeastReadBytes) bytes_.resize(std::max(bytes_.size() * 2, first_bytes(*stream_)));
  size_t count = stream_->read({bytes_.data() + end_, bytes_.size() - end_});
  end_ += count;
  ended_ = count == 0;
  return !ended_;
}

}  // namespace tokamak
