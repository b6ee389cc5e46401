// One of a checkpoint's files, mapped and open. A part of checkpoint.h.
#pragma once

#include "base/file.h"

namespace tokamak {

class CheckpointFile : public MappedFile {
 public:
  explicit CheckpointFile(const std::filesystem::path& path) : MappedFile(path), reader_(path) {}

  /// Copies `part` of bytes() into `out`, which is as long. No page of the mapping is touched: where every row is read
  /// in part, the pages of all rows would be memory of the process.
  void read(std::span<const std::byte> part, std::span<std::byte> out) const {
    reader_.read(part.data() - bytes().data(), out);
  }

 private:
  FileReader reader_;
};

}  // namespace tokamak
