// The input of `prepare` as batches of whole parts of documents, from any place on: what its threads work on.
// Tests: tests/data/prepare_reader_test.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/open_source.h"

namespace tokamak {

/// A place in the input: a part of a document as its source gives it, and a token in it. Which parts there are does not
/// depend on threads or earlier runs, so a place means the same in the next run.
struct PreparePlace {
  int64_t file = 0;
  int64_t part = 0;       // of the file
  int64_t tokens = 0;     // of the part, its separator included, that lie before
  bool separate = false;  // a document that begins with this part needs a separator
};

/// Some parts of documents, one after the other, and what becomes of them.
struct PrepareBatch {
  struct Part {
    PreparePlace place;      // where it begins, or where reading began
    bool separator = false;  // goes before it
    bool whole = true;       // all of its document
    size_t text_bytes = 0;   // in `text`
    size_t given = 0;        // in `given`
    size_t learned = 0;      // in `learned`; of a conversation at least one
    size_t ids = 0;          // in `ids`: all of them, without those that lie before the place
  };

  std::vector<Part> parts;
  std::string text;
  std::vector<int32_t> given;     // documents that are tokens already
  std::vector<TextSpan> learned;  // in the text of its part
  std::vector<int32_t> ids;       // filled in by who encodes it
  int64_t bytes_read = 0;         // of all files up to its end, for progress
};

struct PrepareReaderOptions {
  SourceOptions sources;
  int32_t separator = 0;               // a document that begins or ends with it needs no other
  int64_t batch_bytes = 1 << 20;       // about
  std::vector<int64_t> text_limits{};  // of the text up to the end of each file; empty: all of it
};

class PrepareReader {
 public:
  PrepareReader(std::vector<std::filesystem::path> files, PrepareReaderOptions options, PreparePlace from = {});

  /// The next parts; none where the input is only gone through up to the place to begin at. False at the end.
  bool fill(PrepareBatch& batch);

 private:
  bool next_document(Document& document);
  void add(const Document& document, PrepareBatch& batch);
  bool is_over_limit() const;

  std::vector<std::filesystem::path> files_;
  PrepareReaderOptions options_;
  PreparePlace from_;
  std::unique_ptr<Source> source_;
  int64_t file_;
  int64_t part_ = 0;         // the next one of the source
  int64_t files_bytes_ = 0;  // of the files before
  int64_t text_bytes_ = 0;   // given so far
  bool continues_ = false;   // the next part goes on with the document before
  bool separate_;            // the next document needs a separator
};

/// The size of a file on the disk; 0 for what has none, such as a pipe.
int64_t input_size(const std::filesystem::path& path);

}  // namespace tokamak
