#include "base/temporary_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEnding = ".tmp";
constexpr size_t kDigits = 16;

/// Waits for a lock; without one, where the file system has none, a file is not taken for a leftover either.
void lock(int fd) {
  while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) continue;
}

bool is_removed(int fd) {
  struct stat info;
  return ::fstat(fd, &info) == 0 && info.st_nlink == 0;
}

void remove_if_dead(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace

// From the system: processes on several machines may share the folder, so that a process id would not do.
fs::path temporary_name(const fs::path& path) {
  std::random_device random;
  return path.string() + fmt::format(".{:08x}{:08x}{}", random(), random(), kEnding);
}

FileDescriptor create_exclusively(int folder, const fs::path& name, unsigned mode) {
  return FileDescriptor(::openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

TemporaryFile make_temporary(const fs::path& path) {
  for (;;) {
    fs::path name = temporary_name(path);
    FileDescriptor fd = create_exclusively(AT_FDCWD, name, 0666);
    if (!fd.is_open() && (errno == EINTR || errno == EEXIST)) continue;
    if (!fd.is_open()) file_error("write", path, errno);
    lock(fd.get());
    // Between creation and lock another process may have taken it for a leftover.
    if (!is_removed(fd.get())) return {std::move(fd), name};
  }
}

void remove_dead_temporaries(const fs::path& path) {
  fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::string name = path.filename().string();
  std::vector<fs::path> found;
  std::error_code error;  // leftovers cost only space
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string entry = at->path().filename().string();
    if (entry != name && without_temporary_ending(entry) == name) found.push_back(at->path());
  }
  for (const fs::path& leftover : found) remove_if_dead(leftover);
}

std::string_view without_temporary_ending(std::string_view name) {
  size_t ending = 1 + kDigits + kEnding.size();
  if (name.size() <= ending || !name.ends_with(kEnding)) return name;
  std::string_view base = name.substr(0, name.size() - ending), digits = name.substr(base.size() + 1, kDigits);
  bool random = name[base.size()] == '.' && digits.find_first_not_of("0123456789abcdef") == digits.npos;
  return random ? base : name;
}

}  // namespace tokamak
