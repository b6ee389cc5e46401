#include "base/path_links.h"

#include <charconv>
#include <string>
#include <system_error>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as Linux has it

// /dev/fd is a link to the folder that the kernel makes of them.
std::optional<int> descriptor_of(const fs::path& folder, const std::string& name) {
  int number = 0;
  auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (wrong != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  std::error_code error;
  fs::path open_files = fs::canonical("/proc/self/fd", error);
  return !error && fs::canonical(folder, error) == open_files && !error ? std::optional(number) : std::nullopt;
}

}  // namespace

PathEnd follow_links(fs::path path) {
  for (int i = 0; i < kMostLinks; ++i) {
    fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
    if (std::optional<int> number = descriptor_of(folder, path.filename().string())) return {path, number};
    std::error_code no_link;
    fs::path target = fs::read_symlink(path, no_link);
    if (no_link) break;
    path = target.is_absolute() ? target : folder / target;
  }
  return {path, std::nullopt};
}

bool is_named(const fs::path& path) {
  std::error_code absent;
  return fs::exists(fs::symlink_status(path, absent));
}

}  // namespace tokamak
