// Compiled device code on disk. Whoever can write there can have any code run, so it lies in a folder of the user's
// own, whatever the cache around it is shared with. Tests: tests/backend/cuda/code_cache_test.cpp
#pragma once

#include "base/file.h"

#include <filesystem>
#include <string>

namespace tokamak::cuda {

class CodeCache {
 public:
  /// Keeps code in `folder`/kernels-<user id>, which is made with mode 0700. Keeps nothing without a folder, and where
  /// that one is a symbolic link, another user's, or open to others. Removes what killed processes left there.
  explicit CodeCache(const std::filesystem::path& folder);

  /// The code of that name; empty when there is none, or it cannot be read, is another user's or is damaged.
  std::string find(const std::string& name) const;

  /// What cannot be written costs time at the next start, no more.
  void put(const std::string& name, const std::string& code) const;

 private:
  FileDescriptor folder_;  // closed: nothing is kept
};

}  // namespace tokamak::cuda
