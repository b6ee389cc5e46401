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

#include "data/open_source.h"
#include "data/token_shard_index.h"
#include "data/token_stats.h"

namespace tokamak {

/// Told in bytes, by one thread at a time; `total` is 0 where it is not known.
using InspectProgress = std::function<void(int64_t done, int64_t total)>;

/// One file.
struct FileReport {
  std::filesystem::path path;
  std::string split;               // train or val, of a prepared folder
  std::string format;              // one of source_formats(), or tokenizer
  int64_t bytes = 0;               // of the file; 0 if it cannot be opened
  std::string checksum;            // of a shard: of the whole file; of other tokens: the fingerprint
  std::string stored_as;           // of tokens: uint16 and the like; empty where it is not known
  bool seekable = false;           // training can read its tokens from any place
  TokenStats tokens;               // of files of tokens
  LengthHistogram documents;       // of text, in bytes, and of documents that come as tokens, in tokens
  int64_t text_bytes = 0;          // of the documents' text
  std::string beginning;           // of the first document's text, some hundred bytes
  std::string problem;             // what is wrong with it; empty: nothing
  std::vector<std::string> notes;  // on its content; what is doubtful begins with "warning"

  bool good() const;  // neither damaged nor doubtful
};

struct DataReport {
  std::string path;                      // as the user named it
  std::optional<TokenShardIndex> index;  // of a prepared folder
  SourceOptions options;                 // how its files were read
  std::vector<FileReport> files;
  std::vector<std::string> notes;  // on what was found: passed over, or of several splits

  int64_t damaged() const;                          // files
  TokenStats tokens(std::string_view split) const;  // of its good files, in order
};

/// Reads every file of a folder and compares it with the index. A UserError only if the index itself is not good.
DataReport inspect_folder(const std::filesystem::path& folder, const InspectProgress& progress = {});

/// Reads files of tokens and of documents: `input` is a file, a folder or a pattern, see find_files(). `separator` is
/// the token that ends a document, where that is known. A UserError only if there is no such file, or a folder that
/// `prepare` has not finished.
DataReport inspect_files(const std::string& input, const SourceOptions& options,
                         const std::optional<int32_t>& separator, const InspectProgress& progress = {});

/// A piece of the data to look at.
struct DataSample {
  std::filesystem::path path;
  int64_t token = 0;  // where it begins in its file
  std::vector<int32_t> ids;
};

/// `count` pieces of at most `tokens` tokens, at equal distances over all good seekable files; the first is the
/// beginning.
std::vector<DataSample> sample_tokens(const DataReport& report, int64_t count, int64_t tokens);

}  // namespace tokamak
