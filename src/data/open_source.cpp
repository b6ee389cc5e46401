#include "data/open_source.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "data/join_tokens.h"
#include "data/sources/compression.h"
#include "data/sources/content.h"
#include "data/sources/source_format.h"
#include "data/sources/text.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// What a file holds, decompressed; nothing is known of a pipe, which cannot be read twice.
bool is_json_lines(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  ByteBuffer buffer(open_bytes(path, {}));
  return look_at(buffer).form == Content::Form::kJsonLines;
}

/// Every format. Where several fit a file's name, the first that recognizes it is taken.
const std::vector<SourceFormat>& table() {
  static const std::vector<SourceFormat> rows = {
      {.name = "text",
       .description = "plain text or Markdown; a file is one document",
       .names = {"*.txt", "*.md"},
       .documents = &text_documents},
      {.name = "jsonl",
       .description = "a JSON object on each line, one field of which is a document",
       .names = {"*.jsonl", "*.ndjson", "*.json"},
       .documents = &jsonl_documents,
       .recognizes = [](const fs::path& path) { return !has_ending(path.string(), ".json") || is_json_lines(path); }},
      {.name = "csv",
       .description = "a table with names of columns in its first row, CSV or TSV; one column's fields are documents",
       .names = {"*.csv", "*.tsv"},
       .documents = &csv_documents},
      {.name = "mds",
       .description = "shards of MosaicML's streaming format; one column of each sample is a document",
       .names = {"*.mds"},
       .documents = &mds_documents},
      {.name = "parquet",
       .description = "Parquet; one column of text or of lists of tokens, each row of which is a document",
       .names = {"*.parquet"},
       .documents = &parquet_documents},
      {.name = "arrow",
       .description = "Arrow's stream or file, as the cache of Hugging Face's datasets; a column as of Parquet",
       .names = {"*.arrow"},
       .documents = &arrow_documents},
      {.name = "webdataset",
       .description = "a tar archive: text, JSON and JSONL members are documents, .npy members tokens",
       .names = {"*.tar", "*.tgz"},
       .documents = &webdataset_documents,
       .tokens = &tar_tokens},
      {.name = "megatron",
       .description = "tokens as Megatron-LM keeps them, X.bin with X.idx beside it",
       .names = {"*.bin"},
       .documents = &megatron_documents,
       .tokens = &megatron_tokens,
       .recognizes = is_megatron},
      {.name = "bin",
       .description = "shards of tokens with a header, of prepare, llm.c or modded-nanogpt",
       .names = {"*.bin"},
       .documents = &bin_documents,
       .tokens = &bin_tokens},
      {.name = "raw",
       .description = "tokens without a header, as nanoGPT has them; only where it is named",
       .names = {},
       .documents = &raw_documents,
       .tokens = &raw_tokens},
      {.name = "npy",
       .description = "an array of integers as NumPy saves it",
       .names = {"*.npy"},
       .documents = &npy_documents,
       .tokens = &npy_tokens},
      {.name = "hdf5",
       .description = "a dataset of an HDF5 file: strings are documents, integers tokens",
       .names = {"*.h5", "*.hdf5"},
       .documents = &hdf5_documents,
       .tokens = &hdf5_tokens},
      {.name = "lmdb",
       .description =
           "an LMDB database, in the order of its keys: values are text or JSON objects, or tokens to train on",
       .names = {"*.mdb", "*.lmdb"},
       .documents = &lmdb_documents,
       .tokens = &lmdb_tokens,
       .recognizes = [](const fs::path& path) { return path.filename() != "lock.mdb"; }},
      {.name = "lmdb-tokens",
       .description = "an LMDB database whose values are tokens, each a document; only where it is named",
       .names = {},
       .documents = &lmdb_token_documents,
       .tokens = &lmdb_tokens},
  };
  return rows;
}

SourceFormatInfo info_of(const SourceFormat& row) {
  std::string_view missing;
  if (row.documents) missing = row.documents->missing;
  if (row.tokens && missing.empty()) missing = row.tokens->missing;
  return {row.name, row.description, missing, row.documents != nullptr, row.tokens != nullptr};
}

/// The rows and what is told of them, in the same order.
const SourceFormat& row_of(const SourceFormatInfo& info) { return table()[size_t(&info - source_formats().data())]; }

bool fits(const SourceFormat& row, const fs::path& path) {
  std::string name(without_compression_ending(path.filename().string()));
  bool by_name = std::any_of(row.names.begin(), row.names.end(),
                             [&](const char* pattern) { return ::fnmatch(pattern, name.c_str(), 0) == 0; });
  return by_name && (!row.recognizes || row.recognizes(path));
}

const SourceFormatInfo* find_by_name(std::string_view name) {
  for (const SourceFormatInfo& info : source_formats())
    if (info.name == name) return &info;
  return nullptr;
}

/// For what is read from any place, not from the beginning to the end.
void check_not_compressed(const fs::path& path, const SourceFormatInfo& info) {
  if (is_named_compressed(path))
    user_error("[data] {}: expected an uncompressed file, as {} is read from any place in it; unpack it first",
               path.string(), info.name);
}

[[noreturn]] void missing_error(const fs::path& path, const SourceFormatInfo& info, std::string_view package) {
  user_error("[data] {}: expected a program that reads {}, got one built without it; install {} and build again",
             path.string(), info.name, package);
}

}  // namespace

const std::vector<SourceFormatInfo>& source_formats() {
  static const std::vector<SourceFormatInfo> infos = [] {
    std::vector<SourceFormatInfo> all;
    for (const SourceFormat& row : table()) all.push_back(info_of(row));
    return all;
  }();
  return infos;
}

std::vector<std::string> source_format_choices() {
  std::vector<std::string> names = {"auto"};
  for (const SourceFormatInfo& info : source_formats()) names.emplace_back(info.name);
  return names;
}

std::vector<std::string_view> format_file_names() {
  std::vector<std::string_view> names;
  for (const SourceFormat& row : table())
    for (std::string_view name : row.names)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

const SourceFormatInfo* format_by_name(const fs::path& path) {
  for (const SourceFormatInfo& info : source_formats())
    if (fits(row_of(info), path)) return &info;
  return nullptr;
}

const SourceFormatInfo& format_of(const fs::path& path, const SourceOptions& options) {
  if (options.format == "auto") {
    if (const SourceFormatInfo* info = format_by_name(path)) return *info;
    return *find_by_name(is_json_lines(path) ? "jsonl" : "text");
  }
  if (const SourceFormatInfo* info = find_by_name(options.format)) return *info;
  user_error("[data] expected one of {} as format, got {}", fmt::join(source_format_choices(), ", "), options.format);
}

void look_ahead(const fs::path& path, const SourceOptions& options) {
  const DocumentReader* reader = row_of(format_of(path, options)).documents;
  if (reader && reader->looks && fs::is_regular_file(path)) open_source(path, options);
}

std::unique_ptr<Source> open_source(const fs::path& path, const SourceOptions& options) {
  const SourceFormatInfo& info = format_of(path, options);
  const DocumentReader* reader = row_of(info).documents;
  if (!reader)
    user_error("[data] {}: expected a file with documents, got one of tokens only ({}); train on it as it is",
               path.string(), info.name);
  if (!reader->open) missing_error(path, info, reader->missing);
  if (!reader->streams) check_not_compressed(path, info);
  if (options.format == "auto" && info.name == "jsonl" && !format_by_name(path))
    note_json_lines(options, path.string());
  return reader->open(path, options);
}

std::unique_ptr<TokenArray> open_tokens(const std::vector<fs::path>& paths, const SourceOptions& options) {
  TOKAMAK_CHECK(!paths.empty(), "no files to open");
  std::vector<std::unique_ptr<TokenArray>> arrays;
  for (const fs::path& path : paths) {
    const SourceFormatInfo& info = format_of(path, options);
    const TokenReader* reader = row_of(info).tokens;
    if (!reader)
      user_error("[data] {}: expected a file of tokens, got documents ({}); run tokamak prepare on it", path.string(),
                 info.name);
    if (!reader->open) missing_error(path, info, reader->missing);
    check_not_compressed(path, info);
    arrays.push_back(reader->open(path, options));
  }
  return arrays.size() == 1 ? std::move(arrays[0]) : join_tokens(std::move(arrays));
}

}  // namespace tokamak
