// A file of ours whose length is known, which several processes write parts of at once, each to its own place. Every
// failure is a UserError as in base/file.h. Tests: tests/base/placed_file_test.cpp.
#pragma once

#include "base/file.h"

namespace tokamak {

class PlacedFile {
 public:
  /// Makes it, full of zeros; there is none yet.
  static void make(const std::filesystem::path& path, int64_t bytes);
  /// Opens it.
  explicit PlacedFile(std::filesystem::path path);

  void write(int64_t offset, std::span<const std::byte> bytes);
  /// Makes sure that what was written here is on the disk.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor fd_;
};

}  // namespace tokamak
