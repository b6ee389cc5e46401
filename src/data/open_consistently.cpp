#include "data/open_consistently.h"

#include "base/checksum.h"
#include "base/file.h"
#include "data/data_path.h"
#include "data/token_shard_index.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// Of the index; empty where there is none, as at the moment when a data set is replaced.
std::string generation_of(const fs::path& folder) {
  try {
    if (!is_prepared(folder)) return "";
    std::string index = read_file(folder / kIndexFile, kLargeFile);
    return format_checksum(checksum(std::as_bytes(std::span(index))));
  } catch (const UserError&) {
    return "";
  }
}

}  // namespace

std::string data_generation(const DataConfig& config) {
  std::string all;
  for (const DataPath& path : all_data_paths(config)) all += generation_of(path.path) + "\n";
  return all;
}

}  // namespace tokamak
