// A file of int64 that only grows, for lists too long for memory. Tests: tests/data/int64_log_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"

namespace tokamak {

/// The first numbers of a log.
struct Int64LogState {
  int64_t size = 0;
  std::string checksum = {};  // of their bytes; empty: not known
};

class Int64Log {
 public:
  /// Opens the file, or makes it, with the numbers of an earlier state; what lies behind them is cut off. A UserError
  /// if there are fewer, or others.
  explicit Int64Log(const std::filesystem::path& path, const Int64LogState& from = {});

  void append(int64_t number);
  int64_t size() const { return size_; }

  /// Everything appended so far is on the disk.
  Int64LogState sync();

  /// All numbers, mapped; valid until the next append().
  std::span<const int64_t> view();

 private:
  void verify(const Int64LogState& from);
  void flush();

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::vector<int64_t> buffer_;
  int64_t size_;
  Checksum checksum_;  // of what is not in the buffer
  MappedFile mapped_;
};

}  // namespace tokamak
