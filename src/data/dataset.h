// A dataset: one entry of data.path, as windows of T + 1 tokens that can be read in any order. Kinds: a folder made by
// `prepare` and files of tokens (data/token_dataset.h), text that is encoded as it is read (data/text_dataset.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/token_array.h"

namespace tokamak {

/// A part of a file.
struct FileRange {
  std::string path;
  int64_t begin = 0;   // the first token's number in the file; of text files the first byte
  int64_t length = 0;  // in the same unit

  bool operator==(const FileRange&) const = default;
};

/// What is known of a dataset as a whole; what is not known is 0 or nothing.
struct DatasetFacts {
  int64_t tokens = 0;
  int64_t text_bytes = 0;  // that the tokens stand for
  int64_t vocab_size = 0;
  int64_t max_token = 0;               // of tokens whose largest is known
  std::optional<int32_t> end_of_text;  // the marker between documents
  bool marked = false;                 // some tokens are not learned (data/marked_tokens.h)
};

/// Reads windows; one for each thread.
class WindowReader {
 public:
  virtual ~WindowReader() = default;

  /// The tokens of a window (0..windows()-1), T + 1 of them, with their marks. UserErrors name the file.
  virtual void read(int64_t window, std::span<int32_t> out) = 0;

  /// Where these tokens come from, in order: mostly one range; more where a window goes over into the next file.
  virtual std::vector<FileRange> place(int64_t window) = 0;
};

/// May be used by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// The entry of data.path, for messages.
  virtual const std::string& path() const = 0;
  /// "prepared", "tokens" or "text".
  virtual const char* kind() const = 0;
  /// Windows of one epoch.
  virtual int64_t windows() const = 0;
  /// Of text: bytes between the beginnings of windows. Else 0.
  virtual int64_t window_bytes() const { return 0; }
  virtual std::unique_ptr<WindowReader> reader() const = 0;
  virtual DatasetFacts facts() const = 0;
  /// The files behind it, in order.
  virtual std::vector<FileFingerprint> fingerprints() const = 0;
  /// Returns when every file that was read from so far is known to be as its index says; a UserError names one that is
  /// damaged. Does nothing where there is no index.
  virtual void verify_used() const {}
};

/// Of the tokens of up to 16 windows, from the first to the last: what the files mean as they are read now.
std::string content_checksum(const Dataset& dataset, int64_t context);

}  // namespace tokamak
