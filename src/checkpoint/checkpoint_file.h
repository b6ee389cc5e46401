// One of a checkpoint's files, mapped and open. A part of checkpoint.h.
#pragma once

#include "base/file.h"

#include <cstddef>
#include <filesystem>
#include <span>

namespace tokamak {

class CheckpointFile : public MappedFile {
 public:
  explicit CheckpointFile(const std::filesystem::path& path) : MappedFile(path), reader_(path) {}

  /// Copies `part` of bytes() into `out`, which is as long. No page of the mapping is touched: where every row is read
  /// in part, the pages of all rows would be memory of the process. All threads copy: one alone takes seconds for a
  /// large model. UserError where the file cannot be read.
  void read(std::span<const std::byte> part, std::span<std::byte> out) const;

 private:
  FileReader reader_;
};

}  // namespace tokamak
