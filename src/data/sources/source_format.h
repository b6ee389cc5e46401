// What data/open_source.cpp knows of each format. A format is one file here that defines its readers, and one row of
// the table in open_source.cpp. A format that needs a library is in optional/, with a file of the same name in absent/
// whose readers say which package is missing; CMake builds one of the two.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "data/open_source.h"

namespace tokamak {

/// Opens one file as documents.
struct DocumentReader {
  std::unique_ptr<Source> (*open)(const std::filesystem::path& path, const SourceOptions& options) = nullptr;
  std::string_view missing = {};  // the package to install, where the library was absent at build time; then no `open`
  bool streams = false;           // from the beginning to the end only, so that the file may be compressed
  bool looks = false;             // opening takes no time, and looks at the content
};

/// Opens one file as tokens.
struct TokenReader {
  std::unique_ptr<TokenArray> (*open)(const std::filesystem::path& path, const SourceOptions& options) = nullptr;
  std::string_view missing = {};
};

/// A row of the table.
struct SourceFormat {
  std::string_view name;
  std::string_view description;
  std::vector<const char*> names;             // of files, as fnmatch(3) patterns, without .gz and .zst
  const DocumentReader* documents = nullptr;  // null: the format has none
  const TokenReader* tokens = nullptr;
  bool (*recognizes)(const std::filesystem::path& path) = nullptr;  // formats that share a name look into the file
};

/// The format that a file's name (and, where formats share a name, its content) tells; null if it tells none.
const SourceFormatInfo* format_by_name(const std::filesystem::path& path);

/// The names that files of all formats have, as patterns, for messages.
std::vector<std::string_view> format_file_names();

extern const DocumentReader text_documents;
extern const DocumentReader jsonl_documents;
extern const DocumentReader csv_documents;
extern const DocumentReader mds_documents;
extern const DocumentReader parquet_documents;
extern const DocumentReader arrow_documents;
extern const DocumentReader webdataset_documents;
extern const DocumentReader megatron_documents;
extern const DocumentReader bin_documents;
extern const DocumentReader raw_documents;
extern const DocumentReader npy_documents;
extern const DocumentReader hdf5_documents;
extern const DocumentReader lmdb_documents;
extern const DocumentReader lmdb_token_documents;

extern const TokenReader tar_tokens;
extern const TokenReader megatron_tokens;
extern const TokenReader bin_tokens;
extern const TokenReader raw_tokens;
extern const TokenReader npy_tokens;
extern const TokenReader hdf5_tokens;
extern const TokenReader lmdb_tokens;

/// True of X.bin with an X.idx beside it.
bool is_megatron(const std::filesystem::path& path);

}  // namespace tokamak
