// A file of a data folder and the checksum of all its bytes. Tests: tests/data/file_checksum_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"

namespace tokamak {

struct FileChecksum {
  std::string file;  // name inside the folder
  std::string checksum;

  bool operator==(const FileChecksum&) const = default;
};

/// The checksum of all bytes of a file, which is read in pieces; see base/checksum.h.
std::string checksum_file(const FileReader& file);
std::string checksum_file(const std::filesystem::path& path);

/// Whether a file is there, can be read and has this checksum. One of more than `most` bytes has not, and is not read.
bool has_checksum(const std::filesystem::path& path, const std::string& checksum, int64_t most);

/// A UserError, which begins with `[where]`, if a file's checksum is not the one that the folder's index has. A file of
/// more than `most` bytes is not read for that.
void verify_file(const FileReader& file, const std::string& checksum, std::string_view where, int64_t most = INT64_MAX);

}  // namespace tokamak
