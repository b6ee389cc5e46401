#include "base/system.h"

#include <fstream>
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

int64_t available_memory() { return read_kib("/proc/meminfo", "MemAvailable:"); }
int64_t resident_bytes() { return read_kib("/proc/self/status", "VmRSS:"); }
int64_t peak_resident_bytes() { return read_kib("/proc/self/status", "VmHWM:"); }

}  // namespace tokamak
