// A lock that one process holds at a time and that ends with it, however it ends, also over network file systems.
// Tests: tests/base/file_lock_test.cpp.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.h"

namespace tokamak {

class FileLock {
 public:
  /// Tries to take the lock that the file stands for, and writes into the file who has it. Does not wait. Where the
  /// file system has no locks, everyone gets it.
  explicit FileLock(std::filesystem::path file);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  /// Removes the file, if the lock is held.
  ~FileLock();

  bool is_held() const { return fd_.is_open(); }
  /// Who held it when it was not to be had: "process 1234 on host".
  const std::string& holder() const { return holder_; }

 private:
  std::filesystem::path file_;
  FileDescriptor fd_;  // open as long as the lock is held
  std::string holder_;
};

/// Who holds the lock; empty: nobody, as far as can be told. Takes no lock, and makes no file.
std::string lock_holder(const std::filesystem::path& file);

}  // namespace tokamak
