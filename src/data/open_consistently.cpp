#include "data/open_consistently.h"

#include "data/data_path.h"
#include "data/file_checksum.h"
#include "data/shard_index.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// Of the index; empty where there is none, as at the moment when a data set is replaced.
std::string generation_of(const fs::path& folder) {
  try {
    return is_prepared(folder) ? checksum_file(folder / kIndexFile) : "";
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
