#include "base/control_group.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// The files that one version tells its limits with.
struct MemoryFiles {
  const char *limit, *usage, *cached;  // cached: the key in memory.stat of files that can be dropped
};
constexpr MemoryFiles kMemory1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr MemoryFiles kMemory2 = {"memory.max", "memory.current", "inactive_file"};

/// Nothing where there is no number, such as "max".
std::optional<int64_t> read_number(const fs::path& path) {
  int64_t number;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

int64_t read_cached(const fs::path& folder, const std::string& key) {
  std::ifstream file(folder / "memory.stat");
  int64_t number;
  for (std::string name; file >> name >> number;)
    if (name == key) return number;
  return 0;
}

template <class T>
void tighten(std::optional<T>& limit, T other) {
  limit = limit ? std::min(*limit, other) : other;
}

void take_memory(const fs::path& folder, const MemoryFiles& files, GroupLimits& limits) {
  std::optional<int64_t> limit = read_number(folder / files.limit), usage = read_number(folder / files.usage);
  constexpr int64_t kNone = int64_t(1) << 60;  // version 1 writes a number for "no limit"
  if (!limit || !usage || *limit >= kNone) return;
  tighten(limits.memory_left, std::max<int64_t>(*limit - *usage + read_cached(folder, files.cached), 0));
}

void take_cpus(std::optional<int64_t> quota, std::optional<int64_t> period, GroupLimits& limits) {
  if (quota && period && *quota > 0 && *period > 0) tighten(limits.cpus, double(*quota) / double(*period));
}

void take_cpus_2(const fs::path& folder, GroupLimits& limits) {
  std::ifstream file(folder / "cpu.max");
  int64_t quota, period;
  if (file >> quota >> period) take_cpus(quota, period, limits);
}

/// The folder of a group and those around it, as far as they can be seen: in a container the outer ones cannot.
std::vector<fs::path> folders_of(const fs::path& mount, const fs::path& group) {
  std::vector<fs::path> folders;
  for (fs::path inner = group.relative_path();; inner = inner.parent_path()) {
    folders.push_back(mount / inner);
    if (inner.empty()) return folders;
  }
}

bool has_controller(const std::string& list, const std::string& wanted) {
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');)
    if (name == wanted) return true;
  return false;
}

}  // namespace

GroupLimits read_group_limits(const fs::path& root) {
  GroupLimits limits;
  fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");  // "4:cpu,cpuacct:/path" a hierarchy; version 2: "0::/path"
  for (std::string number, controllers, group;
       std::getline(groups, number, ':') && std::getline(groups, controllers, ':') && std::getline(groups, group);) {
    if (controllers.empty())
      for (const fs::path& folder : folders_of(mounts, group)) {
        take_memory(folder, kMemory2, limits);
        take_cpus_2(folder, limits);
      }
    if (has_controller(controllers, "memory"))
      for (const fs::path& folder : folders_of(mounts / "memory", group)) take_memory(folder, kMemory1, limits);
    if (has_controller(controllers, "cpu"))
      for (const fs::path& folder : folders_of(mounts / controllers, group))
        take_cpus(read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us"), limits);
  }
  return limits;
}

}  // namespace tokamak
