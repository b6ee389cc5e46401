// Files written without syncing the disk, for tests that write thousands of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace tokamak {

inline void write_file_quickly(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), std::streamsize(content.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace tokamak
