#include "base/system.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tokamak {
namespace {

// The number of a line "Key:   123 kB", in bytes.
int64_t read_kib(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    std::istringstream rest(line.substr(key.size()));
    int64_t kib = 0;
    rest >> kib;
    return kib * 1024;
  }
  return 0;
}

}  // namespace

double process_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // The name, which may hold anything, ends with the last parenthesis; what follows begins with the third field.
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  constexpr int kBefore = 19;  // fields between the name and the time at which the process began, the 22nd
  std::string skipped;
  for (int i = 0; i < kBefore; ++i) fields >> skipped;
  double ticks = 0;
  timespec now{};
  if (!(fields >> ticks) || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9 - ticks / double(::sysconf(_SC_CLK_TCK));
}

int64_t available_memory(const GroupLimits& limits) {
  int64_t machine = read_kib("/proc/meminfo", "MemAvailable:");
  if (!limits.memory_left) return machine;
  return machine > 0 ? std::min(machine, *limits.memory_left) : *limits.memory_left;
}

int usable_cpus(int cpus, const GroupLimits& limits) {
  return limits.cpus ? std::clamp(int(std::ceil(*limits.cpus)), 1, cpus) : cpus;
}

int64_t resident_bytes() { return read_kib("/proc/self/status", "VmRSS:"); }

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

void raise_open_file_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace tokamak
