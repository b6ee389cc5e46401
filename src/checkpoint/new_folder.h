// A folder that a user names, with files of a model: it appears under its name whole or not at all. Tests:
// tests/checkpoint/export_model_test.cpp.
#pragma once

#include "base/file.h"

#include <filesystem>

namespace tokamak {

class NewFolder {
 public:
  /// Makes an empty folder beside `path`, named after it, that is removed again unless commit() is called, and removes
  /// what killed processes left of others. UserError: there is something at `path` that is no empty folder, and
  /// `replace` does not allow it, or it has a file of another name than a model's.
  NewFolder(const std::filesystem::path& path, bool replace);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();

  /// Where its files go.
  const std::filesystem::path& growing() const { return growing_; }

  /// Syncs it and gives it its name. UserError where something has come there meanwhile that may not be replaced.
  void commit();

 private:
  std::filesystem::path path_, growing_;
  bool replace_;
  FileDescriptor lock_;
};

}  // namespace tokamak
