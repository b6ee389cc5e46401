#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "base/error.h"
#include "base/path_links.h"
#include "base/temporary_file.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

const char* advice(int error_number) {
  switch (error_number) {
    case ENOENT: return "check the path";
    case EACCES:
    case EPERM: return "change its permissions or choose another path";
    case EROFS: return "the file system is read-only: choose another path";
    case ENOSPC:
    case EDQUOT: return "the disk or the quota is full: free some space or choose another path, then run again";
    case EFBIG: return "the file would grow beyond the limit for files: raise it (ulimit -f), then run again";
    case EISDIR: return "it is a folder: name a file";
    case ENODEV: return "it is a pipe or a device: name a file";
    case ENOTDIR: return "a part of the path is not a folder: check the path";
    case EMFILE:
    case ENFILE: return "too many files are open: raise the limit (ulimit -n)";
    default: return "check the path and the disk";
  }
}

FileDescriptor open_file(const fs::path& path, int flags, std::string_view action) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) file_error(action, path, errno);
  return FileDescriptor(fd);
}

/// Of what may be read from any place.
struct stat regular_file_info(int fd, const fs::path& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) file_error("read", path, errno);
  if (S_ISDIR(info.st_mode)) file_error("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) file_error("read", path, ENODEV);
  return info;
}

// What has this name would be gone. A link that is replaced stays where it leads.
void refuse_to_replace(const fs::path& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) return;
  file_error("write", path, S_ISDIR(info.st_mode) ? EISDIR : ENODEV);
}

void rename_temporary(const fs::path& temporary, const fs::path& path) {
  refuse_to_replace(path);
  if (::rename(temporary.c_str(), path.c_str()) != 0) file_error("write", path, errno);
}

[[noreturn]] void too_large(std::string_view name, int64_t most) {
  user_error("[file] cannot read {}: expected at most {} MiB, got more; name another file", name, most >> 20);
}

void sync_descriptor(int fd, const fs::path& path) {
  // EINVAL: some file systems (FUSE, pipes) cannot sync; the data is as safe there as it can be.
  if (::fsync(fd) != 0 && errno != EINVAL) file_error("write", path, errno);
}

}  // namespace

void file_error(std::string_view action, const fs::path& path, int error_number) {
  user_error("[file] cannot {} {}: {}; {}", action, path.string(), std::strerror(error_number), advice(error_number));
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  FileDescriptor fd = open_to_read(path);
  struct stat info = regular_file_info(fd.get(), path);
  if (info.st_size == 0) return;  // mmap refuses empty mappings; an empty span says the same
  void* at = ::mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) file_error("map", path, errno);
  bytes_ = {static_cast<const std::byte*>(at), size_t(info.st_size)};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::byte> part) const {
  constexpr int64_t kPage = 4096;
  int64_t begin = part.data() - bytes_.data(), end = begin + int64_t(part.size());
  if (end < int64_t(bytes_.size())) end -= end % kPage;  // the page at the border is someone else's as well
  begin = round_up(begin, kPage);
  if (begin < end) ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, size_t(end - begin), MADV_DONTNEED);
}

FileReader::FileReader(const fs::path& path)
    : path_(path), fd_(open_to_read(path)), size_(regular_file_info(fd_.get(), path).st_size) {}

void FileReader::read(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    ssize_t count = ::pread(fd_.get(), out.data(), out.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("read", path_, errno);
    if (count == 0)
      user_error(
          "[file] {}: expected {} bytes from byte {} on, got the end of the file; it is cut short: copy it again",
          path_.string(), out.size(), offset);
    offset += count;
    out = out.subspan(size_t(count));
  }
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  refuse_to_replace(path_);
  TemporaryFile file = make_temporary(path_);
  temporary_ = std::move(file.path);
  fd_ = std::move(file.fd);
  remove_dead_temporaries(path_);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::move(other.fd_)) {}

AtomicFile::~AtomicFile() {
  if (fd_.is_open()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  TOKAMAK_CHECK(fd_.is_open(), "write to {} after its commit", path_.string());
  write_all(fd_.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path_);
}

void AtomicFile::write_at(size_t offset, std::span<const std::byte> bytes) {
  TOKAMAK_CHECK(fd_.is_open(), "write to {} after its commit", path_.string());
  while (!bytes.empty()) {
    ssize_t count = ::pwrite(fd_.get(), bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", path_, errno);
    offset += size_t(count);
    bytes = bytes.subspan(size_t(count));
  }
}

void AtomicFile::sync() {
  TOKAMAK_CHECK(fd_.is_open(), "{} is committed already", path_.string());
  sync_descriptor(fd_.get(), path_);
}

void AtomicFile::commit() {
  sync();
  rename_temporary(temporary_, path_);
  fd_ = FileDescriptor();
  sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

FileDescriptor open_to_read(const fs::path& path) {
  FileDescriptor fd = open_file(path, O_RDONLY | O_NONBLOCK, "read");
  refuse_device(fd.get(), path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) file_error("read", path, errno);
  if (S_ISFIFO(info.st_mode) && !follow_links(path).descriptor) file_error("read", path, ENODEV);
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) file_error("read", path, errno);
  return fd;
}

void refuse_device(int fd, const fs::path& name) {
  struct stat info;
  if (::fstat(fd, &info) != 0) file_error("read", name, errno);
  bool has_end = S_ISCHR(info.st_mode) && (info.st_rdev == makedev(1, 3) || ::isatty(fd) == 1);  // 1, 3: /dev/null
  if (S_ISBLK(info.st_mode) || (S_ISCHR(info.st_mode) && !has_end)) file_error("read", name, ENODEV);
}

std::string read_all(int fd, std::string_view name, int64_t most) {
  refuse_device(fd, name);
  std::string content;
  size_t used = 0;
  struct stat info;
  // The size is a hint only: a pipe has none, and a file may grow while it is read.
  bool has_size = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (has_size && info.st_size > most) too_large(name, most);
  size_t hint = has_size ? size_t(info.st_size) + 1 : size_t(1) << 16;
  for (;;) {
    if (content.size() == used) content.resize(used + std::max(hint, used));
    ssize_t count = ::read(fd, content.data() + used, content.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("read", name, errno);
    if (count == 0) break;
    used += size_t(count);
    if (int64_t(used) > most) too_large(name, most);
  }
  content.resize(used);
  return content;
}

std::string read_file(const fs::path& path, int64_t most) {
  return read_all(open_to_read(path).get(), path.string(), most);
}

void write_all(int fd, std::string_view bytes, const fs::path& name) {
  while (!bytes.empty()) {
    ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) file_error("write", name, errno);
    bytes.remove_prefix(size_t(count));
  }
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void write_shared_file(const fs::path& path, std::string_view content) {
  TemporaryFile file = make_temporary(path);
  try {
    write_all(file.fd.get(), content, path);
    rename_temporary(file.path, path);
  } catch (...) {
    ::unlink(file.path.c_str());
    throw;
  }
}

void make_folder(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> parents;  // of those that are made
  for (fs::path at = fs::absolute(path / ".").parent_path();
       fs::symlink_status(at, error).type() == fs::file_type::not_found && at.has_relative_path();
       at = at.parent_path())
    parents.push_back(at.parent_path());
  fs::create_directories(path, error);
  if (error) file_error("make the folder", path, error.value());
  if (!fs::is_directory(path, error)) file_error("make the folder", path, ENOTDIR);
  for (const fs::path& parent : parents)
    if (::access(parent.c_str(), R_OK) == 0) sync_folder(parent);
}

void check_folder(const fs::path& path) {
  std::error_code error;
  fs::path there = fs::absolute(path);
  while (fs::symlink_status(there, error).type() == fs::file_type::not_found && there.has_relative_path())
    there = there.parent_path();
  if (!fs::is_directory(there, error)) file_error("make the folder", path, ENOTDIR);
  if (::access(there.c_str(), W_OK | X_OK) != 0) file_error("make the folder", path, errno);
}

void sync_folder(const fs::path& path) {
  FileDescriptor fd = open_file(path, O_RDONLY | O_DIRECTORY, "sync the folder");
  sync_descriptor(fd.get(), path);
}

}  // namespace tokamak
