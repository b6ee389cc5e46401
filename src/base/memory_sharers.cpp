#include "base/memory_sharers.h"

#include "base/error.h"
#include "base/file.h"
#include "base/system.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

std::string read_or_nothing(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

std::string memory_place(const fs::path& root) {
  fs::path proc = root / "proc";
  std::string boot = read_or_nothing(proc / "sys/kernel/random/boot_id");
  std::error_code error;
  fs::path groups = fs::read_symlink(proc / "self/ns/cgroup", error);  // whose names the next are
  return (boot.empty() ? host_name() + "\n" : boot) + groups.string() + "\n" + read_or_nothing(proc / "self/cgroup");
}

}  // namespace tokamak
