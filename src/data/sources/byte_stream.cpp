#include "data/sources/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

class FileBytes : public ByteStream {
 public:
  explicit FileBytes(const fs::path& path) : name_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_.is_open()) file_error("read", path, errno);
    fd_ = file_.get();
    struct stat info;
    if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) total_ = info.st_size;
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  /// Of a descriptor that belongs to someone else.
  explicit FileBytes(int fd) : name_("standard input"), fd_(fd) {}

  size_t read(std::span<char> out) override {
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
  std::string name_;
  FileDescriptor file_;
  int fd_ = -1;
  int64_t read_ = 0, total_ = 0;
};

constexpr size_t kReadBytes = size_t(64) << 10;

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const fs::path& path, const SourceOptions& options) {
  if (path == "-") return decompress(std::make_unique<FileBytes>(options.stdin_fd));
  return decompress(std::make_unique<FileBytes>(path));
}

bool ByteBuffer::fill() {
  if (ended_) return false;
  if (begin_ > 0 && begin_ >= end_ - begin_) {  // so that no byte is moved more often than one is read
    std::copy(bytes_.begin() + std::ptrdiff_t(begin_), bytes_.begin() + std::ptrdiff_t(end_), bytes_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (bytes_.size() - end_ < kReadBytes) bytes_.resize(std::max(bytes_.size() * 2, end_ + kReadBytes));
  size_t count = stream_->read({bytes_.data() + end_, kReadBytes});
  end_ += count;
  ended_ = count == 0;
  return !ended_;
}

}  // namespace tokamak
