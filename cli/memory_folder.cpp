#include "cli/memory_folder.h"

#include <fmt/core.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "TOKAMAK_MEMORY_FOLDER";
constexpr const char* kBegin = "tokamak-states-";
constexpr const char* kOwner = "owner";  // the file that its process locks

// One that is just made may have no owner yet.
bool is_left_behind(const fs::path& folder) {
  struct stat status = {};
  std::error_code absent;
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::getuid() &&
         fs::exists(folder / kOwner, absent) && lock_holder(folder / kOwner).empty();
}

void remove_those_left_behind(const fs::path& parent) {
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, gone))
    if (entry.path().filename().string().starts_with(kBegin) && is_left_behind(entry.path()))
      fs::remove_all(entry.path(), gone);
}

}  // namespace

MemoryFolder::MemoryFolder(const fs::path& parent) {
  remove_those_left_behind(parent);
  std::string name = (parent / (kBegin + std::string("XXXXXX"))).string();
  if (!::mkdtemp(name.data()))
    user_error("[memory_folder] expected a folder in memory to keep states in, got {}: {}; name another",
               parent.string(), std::strerror(errno));
  path_ = name;
  // Under another name until it is locked: nobody takes it for one that was left behind.
  fs::path unlocked = path_ / "new";
  lock_ = std::make_unique<FileLock>(unlocked);
  fs::rename(unlocked, path_ / kOwner);
}

MemoryFolder::~MemoryFolder() {
  std::error_code absent;
  fs::remove_all(path_, absent);
}

std::string MemoryFolder::variable() const { return fmt::format("{}={}", kVariable, path_.string()); }

fs::path given_memory_folder() {
  const char* folder = std::getenv(kVariable);
  return folder ? folder : "";
}

void remove_left_memory_folder() {
  fs::path folder = given_memory_folder();
  std::error_code gone;
  if (!folder.empty() && is_left_behind(folder)) fs::remove_all(folder, gone);
}

}  // namespace tokamak
