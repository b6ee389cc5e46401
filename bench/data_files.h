// Files of tokens in every format that is read by place, for bench_data_sources.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct TokenFileKind {
  const char* name;
  std::string ending;
  /// Writes the tokens (below 65536) into a new file.
  void (*write)(const std::filesystem::path& path, std::span<const int32_t> ids);
};

const std::vector<TokenFileKind>& token_file_kinds();

}  // namespace tokamak
