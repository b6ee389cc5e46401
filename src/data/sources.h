// Where text comes from: files, folders of files, JSONL and standard input, as a stream of documents.
// For examples see tests/data/sources_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

enum class SourceFormat {
  kAuto,   // by the file's name: .jsonl and .ndjson are JSONL, all others text
  kText,   // the whole file is one document
  kJsonl,  // each line is a JSON object; one of its fields is a document
};

struct SourceOptions {
  std::vector<std::string> inputs;  // files, folders, or "-" for standard input
  SourceFormat format = SourceFormat::kAuto;
  std::string text_field = "text";  // of JSONL
  int stdin_fd = 0;                 // what "-" reads
};

/// Text that can be gone through more than once; standard input is kept in memory for that.
class Sources {
 public:
  /// Finds all files: folders are searched with their subfolders for .txt, .md and .jsonl, in the order of their paths.
  /// UserErrors: nothing there, an empty file, a folder without text.
  explicit Sources(SourceOptions options);

  /// Calls `use` for every document, in order. A UserError for a line of JSONL that is none or lacks the field names
  /// the file and the line. Empty documents are left out.
  void for_each(const std::function<void(std::string_view document)>& use) const;

  /// Size of all files, for progress.
  int64_t total_bytes() const { return total_bytes_; }

 private:
  struct Source {
    std::string name;
    bool jsonl;
    std::optional<std::string> content;  // of standard input; files are mapped when their turn comes
  };

  void add_input(const std::string& input);
  void add_file(const std::filesystem::path& path);
  void use_lines(const Source& source, std::string_view text, const std::function<void(std::string_view)>& use) const;

  SourceOptions options_;
  std::vector<Source> sources_;
  int64_t total_bytes_ = 0;
};

}  // namespace tokamak
