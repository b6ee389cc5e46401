// What is in a folder made by `prepare`, in files of tokens or in text, and whether it is whole: every byte is read, on
// all cores, and what is damaged becomes a line of the report, so that one pass finds all of it.
// Tests: tests/data/inspect_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/shard_index.h"
#include "data/token_stats.h"

namespace tokamak {

/// Told in bytes, by one thread at a time; `total` is 0 where it is not known.
using InspectProgress = std::function<void(int64_t done, int64_t total)>;

/// One file.
struct FileReport {
  std::filesystem::path path;
  std::string split;     // train or val, of a prepared folder
  std::string format;    // one of source_formats()
  int64_t bytes = 0;     // 0 if it cannot be opened
  std::string checksum;  // of a shard: of the whole file; of others: the fingerprint
  TokenStats tokens;     // of files of tokens
  std::string problem;   // what is wrong with it; empty: nothing
};

struct DataReport {
  std::string path;                 // as the user named it
  std::optional<ShardIndex> index;  // of a prepared folder
  std::vector<FileReport> files;

  int64_t damaged() const;                          // files
  TokenStats tokens(std::string_view split) const;  // of its good files, in order
};

/// Reads every shard of a folder and compares it with the index. A UserError only if the index itself is not good.
DataReport inspect_folder(const std::filesystem::path& folder, const InspectProgress& progress = {});

/// A piece of the data to look at.
struct DataSample {
  std::filesystem::path path;
  int64_t token = 0;  // where it begins in its file
  std::vector<int32_t> ids;
};

/// `count` pieces of at most `tokens` tokens, at equal distances over all good files; the first is the beginning.
std::vector<DataSample> sample_tokens(const DataReport& report, int64_t count, int64_t tokens);

}  // namespace tokamak
