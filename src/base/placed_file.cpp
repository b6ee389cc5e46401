#include "base/placed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// A call that a signal may interrupt.
template <typename Call>
auto again(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

FileDescriptor open_placed(const fs::path& path, int flags) {
  FileDescriptor fd(again([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666); }));
  if (!fd.is_open()) file_error("write", path, errno);
  return fd;
}

}  // namespace

void PlacedFile::make(const fs::path& path, int64_t bytes) {
  FileDescriptor fd = open_placed(path, O_CREAT | O_EXCL);
  if (again([&] { return ::ftruncate(fd.get(), off_t(bytes)); }) != 0) file_error("write", path, errno);
}

PlacedFile::PlacedFile(fs::path path) : path_(std::move(path)), fd_(open_placed(path_, 0)) {}

void PlacedFile::write(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = again([&] { return ::pwrite(fd_.get(), bytes.data(), bytes.size(), off_t(offset)); });
    if (count < 0) file_error("write", path_, errno);
    offset += count;
    bytes = bytes.subspan(size_t(count));
  }
}

// EINVAL: some file systems cannot sync; the data is as safe there as it can be.
void PlacedFile::sync() {
  if (again([&] { return ::fsync(fd_.get()); }) != 0 && errno != EINVAL) file_error("write", path_, errno);
}

}  // namespace tokamak
