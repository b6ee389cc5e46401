// Where training data comes from: a container of documents (a file, a folder, an archive, standard input) behind one
// interface. Each format is a file of data/sources/; data/open_source.h finds the right one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/chat_template.h"

namespace tokamak {

/// One document, or a part of one, as text or as tokens: the other member is empty. Valid until the next call of its
/// source.
///
/// A text larger than SourceOptions::part_bytes comes in parts, so that no file has to fit in memory. A part ends
/// before a blank that follows a printable ASCII character (0x21 to 0x7e). No pre-tokenizer pattern of GPT-2's,
/// cl100k's or o200k's kind has a word with such a place inside, so the tokens of the parts, one after the other, are
/// those of the whole. (Only where 8 parts' worth of text has no such place does a part end between two other
/// characters.)
struct Document {
  std::string_view text;
  std::span<const int32_t> tokens;
  std::span<const TextSpan> learned = {};  // of a conversation, whose text comes whole: only these pieces are learned
  bool continues = false;  // the next one is the next part of the same document: no separator token between them
};

/// A container, gone through once from its beginning. Not for several threads at a time. Constructors and next() throw
/// UserErrors for what is damaged, truncated or of another shape than its format's; they name the file and the place.
class Source {
 public:
  virtual ~Source() = default;

  /// The next document, never an empty one; false at the end.
  virtual bool next(Document& document) = 0;

  /// What it is, for messages: the path.
  virtual const std::string& name() const = 0;

  /// Bytes of the container gone through so far and in all, for progress; in all is 0 where it is not known.
  virtual int64_t bytes_read() const = 0;
  virtual int64_t total_bytes() const = 0;
};

}  // namespace tokamak
