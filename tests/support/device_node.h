// Devices under names of a test's own: what a fault would do to /dev/full and its like must not happen to the
// machine's.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>

namespace tokamak {

enum class Device : unsigned { kNull = 3, kZero = 5, kFull = 7 };  // of memory, 1

/// False where that is not allowed: it takes root, and a file system with devices.
inline bool make_device(const std::filesystem::path& path, Device device) {
  return ::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, unsigned(device))) == 0;
}

}  // namespace tokamak
