#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

FileDescriptor open_lock(const fs::path& file) {
  FileDescriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd.is_open()) file_error("write", file, errno);
  return fd;
}

// A lock of the open file, not of the process: another one in this process is refused, too, and closing some other
// descriptor of the file does not end it. NFS and Lustre know it as a lock of a range of bytes.
struct flock whole_file() {
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

bool take(const FileDescriptor& fd, const fs::path& file) {
  struct flock range = whole_file();
  if (::fcntl(fd.get(), F_OFD_SETLK, &range) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL) return true;
  file_error("lock", file, errno);
}

// False when the holder before removed the file between our opening and our locking it.
bool is_still_there(const FileDescriptor& fd, const fs::path& file) {
  struct stat ours, named;
  return ::fstat(fd.get(), &ours) == 0 && ::stat(file.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

std::string this_process() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return fmt::format("process {} on {}", ::getpid(), host);
}

void note_holder(const FileDescriptor& fd, const fs::path& file) {
  std::string text = this_process() + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), text.data(), text.size(), 0) != ssize_t(text.size()))
    file_error("write", file, errno);
}

std::string read_holder(const FileDescriptor& fd) {
  std::string text(512, '\0');
  ssize_t count = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(size_t(std::max<ssize_t>(count, 0)));
  text.resize(std::min(text.find('\n'), text.size()));
  return text.empty() ? "another process" : text;
}

}  // namespace

FileLock::FileLock(fs::path file) : file_(std::move(file)) {
  for (;;) {
    FileDescriptor fd = open_lock(file_);
    if (!take(fd, file_)) {
      holder_ = read_holder(fd);
      return;
    }
    if (!is_still_there(fd, file_)) continue;
    note_holder(fd, file_);
    fd_ = std::move(fd);
    return;
  }
}

FileLock::~FileLock() {
  if (is_held()) ::unlink(file_.c_str());
}

std::string lock_holder(const fs::path& file) {
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct flock range = whole_file();
  bool is_held = fd.is_open() && ::fcntl(fd.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  return is_held ? read_holder(fd) : "";
}

}  // namespace tokamak
