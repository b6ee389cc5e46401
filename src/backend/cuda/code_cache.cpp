#include "backend/cuda/code_cache.h"

#include "base/error.h"
#include "base/sha256.h"
#include "base/temporary_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <random>

namespace tokamak::cuda {
namespace {

constexpr size_t kHashDigits = 64;

bool is_own(const struct stat& facts) { return facts.st_uid == ::geteuid(); }

// Everything goes by this descriptor: what has its path by then does not matter.
FileDescriptor open_own_folder(const std::filesystem::path& path) {
  ::mkdir(path.c_str(), 0700);
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  bool is_private = folder.is_open() && ::fstat(folder.get(), &facts) == 0 && is_own(facts) &&
                    (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return is_private ? std::move(folder) : FileDescriptor();
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0) return false;
    text.remove_prefix(size_t(count));
  }
  return true;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// What killed processes have left; the files of living ones are locked.
void remove_leftovers(int folder) {
  int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // entries owns it
  std::unique_ptr<DIR, CloseFolder> entries(own < 0 ? nullptr : ::fdopendir(own));
  if (!entries) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (without_temporary_ending(entry->d_name) == entry->d_name) continue;
    FileDescriptor file(::openat(folder, entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, entry->d_name, 0);
  }
}

}  // namespace

CodeCache::CodeCache(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  try {
    make_folder(folder);
  } catch (const UserError&) {
    return;
  }
  folder_ = open_own_folder(folder / fmt::format("kernels-{}", ::geteuid()));
  if (folder_.is_open()) remove_leftovers(folder_.get());
}

// First the hash of the code, then the code.
std::string CodeCache::find(const std::string& name) const {
  if (!folder_.is_open()) return {};
  FileDescriptor file(::openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || !is_own(facts)) return {};
  try {
    std::string content = read_all(file.get(), name);
    if (content.size() < kHashDigits) return {};
    std::string code = content.substr(kHashDigits);
    return content.starts_with(sha256(code)) ? code : std::string();
  } catch (const UserError&) {
    return {};
  }
}

// Under a name that no other writer has, then under its own: readers see all of it or nothing.
void CodeCache::put(const std::string& name, const std::string& code) const {
  if (!folder_.is_open()) return;
  std::random_device random;  // processes on several machines may share the folder
  std::string temporary = fmt::format("{}.{:08x}{:08x}.tmp", name, random(), random());
  FileDescriptor file = create_exclusively(folder_.get(), temporary, 0600);
  if (!file.is_open()) return;
  ::flock(file.get(), LOCK_EX);  // whoever takes it for a leftover before costs us the entry, no more
  bool written = write_all(file.get(), sha256(code)) && write_all(file.get(), code);
  if (!written || ::renameat(folder_.get(), temporary.c_str(), folder_.get(), name.c_str()) != 0)
    ::unlinkat(folder_.get(), temporary.c_str(), 0);
}

}  // namespace tokamak::cuda
