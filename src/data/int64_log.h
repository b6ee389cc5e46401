// A file of int64 that only grows, for lists too long for memory. Tests: tests/data/int64_log_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/file.h"

namespace tokamak {

class Int64Log {
 public:
  /// Opens the file, or makes it, with its first `size` numbers; what lies behind them is cut off. A UserError if there
  /// are fewer.
  Int64Log(const std::filesystem::path& path, int64_t size);

  void append(int64_t number);
  int64_t size() const { return size_; }

  /// Everything appended so far is on the disk.
  void sync();

  /// All numbers, mapped; valid until the next append().
  std::span<const int64_t> view();

 private:
  void flush();

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::vector<int64_t> buffer_;
  int64_t size_;
  MappedFile mapped_;
};

}  // namespace tokamak
