// From what a user names (paths, globs, formats) to sources.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/source.h"
#include "data/token_array.h"

namespace tokamak {

class ConversationReader;  // data/conversation.h
class MdsHashes;           // data/sources/mds_hashes.h
class PassedOver;          // data/passed_over.h
class SourceNotes;         // data/source_notes.h

/// What remembers the indexes that were read, to be shared by all shards of a folder.
std::shared_ptr<MdsHashes> make_mds_hashes();

/// How to read what a name does not tell by its extension.
struct SourceOptions {
  std::string format = "auto";        // one of source_formats(); auto: by the file's name, or its content
  std::string text_field = "text";    // of JSON objects, columns of tables, a dataset in HDF5 ("" there: the only one)
  std::string token_type = "uint16";  // of tokens in files that do not say: uint16 or uint32
  std::string separator;              // of text files: a marker such as <|endoftext|> between documents, see text.cpp
  std::vector<std::string> members = {"*.txt", "*.md", "*.json", "*.jsonl", "*.npy"};  // of archives
  int64_t part_bytes = 8 << 20;     // larger texts come in parts, see Document
  int stdin_fd = 0;                 // what "-" reads
  std::function<bool()> stop = {};  // asked while a pipe has nothing yet; true ends the waiting
  std::shared_ptr<std::atomic<int64_t>> bad_lines =
      {};  // counts bad lines of JSONL and CSV, which are errors if it is null
  std::shared_ptr<const ConversationReader> conversations =
      {};                                   // what reads objects of JSON; null: their field is text
  std::shared_ptr<SourceNotes> notes = {};  // hears what a user should know of the content; may be null
  std::shared_ptr<MdsHashes> mds_hashes = make_mds_hashes();
};

/// A format by its name, as --format takes it.
struct SourceFormatInfo {
  std::string_view name;         // text, jsonl, csv, webdataset, lmdb, hdf5, bin, raw, megatron, npy
  std::string_view description;  // a line for --help
  std::string_view missing;      // empty if built in; else the package that brings what it needs
  bool documents = false;        // open_source() reads it
  bool tokens = false;           // open_tokens() reads it
};

const std::vector<SourceFormatInfo>& source_formats();
/// What SourceOptions::format may be.
std::vector<std::string> source_format_choices();

/// The files that a path (a file, a folder, a pattern such as data/*.jsonl or data/**/*.txt, or "-") stands for, in the
/// order of their paths. Folders are searched with their subfolders for files whose names have a format; names that
/// begin with a dot, links to folders and empty files are passed over. A UserError if there is none.
/// `passed_over`, if given, becomes what was found in folders and not taken.
std::vector<std::filesystem::path> find_files(const std::string& input, const SourceOptions& options,
                                              PassedOver* passed_over = nullptr);

/// The format that a file has by the options, or else by its name (compression endings .gz and .zst do not count), or
/// else by its content.
const SourceFormatInfo& format_of(const std::filesystem::path& path, const SourceOptions& options);

/// Opens a file where that shows its content early (text, JSONL, archives, tokens without a header), and closes it:
/// what is doubtful goes to options.notes, what is refused is a UserError as open_source()'s.
void look_ahead(const std::filesystem::path& path, const SourceOptions& options);

/// Opens one file (or "-") as documents, from its beginning.
std::unique_ptr<Source> open_source(const std::filesystem::path& path, const SourceOptions& options);

/// Opens files of tokens as one array, each checked against what its format says of it.
std::unique_ptr<TokenArray> open_tokens(const std::vector<std::filesystem::path>& paths, const SourceOptions& options);

}  // namespace tokamak
