// The hashes of shards that a folder of MosaicML's streaming format names in its index.json. Tests:
// tests/data/sources/mds_hashes_test.cpp.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "data/sources/hashed_bytes.h"

namespace tokamak {

/// Reads each index once, for several threads.
class MdsHashes {
 public:
  /// Of a shard's bytes, uncompressed, by the index beside it; none where it names none, or is none. UserError for
  /// hashes of another form.
  Hashes of(const std::filesystem::path& shard);

 private:
  using Index = std::map<std::string, Hashes>;  // by the names of files, compressed or not
  std::mutex mutex_;
  std::map<std::string, Index> indexes_;  // by folder
};

}  // namespace tokamak
