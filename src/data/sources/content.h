// What a stream of bytes holds, as its beginning tells: a file, what is in a compressed one, a member of an archive,
// standard input. Every reader of text asks here; a name is only one more hint.
// Tests: tests/data/sources/content_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/sources/byte_stream.h"

namespace tokamak {

/// As much of a beginning as is looked at, and as much of a first line of JSON, which may be longer.
inline constexpr size_t kContentBegin = size_t(64) << 10;
inline constexpr size_t kFirstJsonLine = size_t(8) << 20;

/// The mark that some programs put before UTF-8; it is no text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct Content {
  enum class Form {
    kText,       // as it should be
    kJsonLines,  // an object a line, at least two of them
    kDoubtful,   // text that is not all meant to be trained on, most likely
    kOther,      // no text: an archive, a compressed file, Parquet, PDF, UTF-16, bytes of zero
  };

  Form form = Form::kText;
  std::string_view what = {};    // in words: "a table"
  std::string_view taken = {};   // how it is read as text all the same
  std::string_view advice = {};  // what to do about it
};

/// What begins with these bytes. `name`: the file or member, also with an ending that only says it is compressed.
Content look_at(std::string_view begin, std::string_view name);

/// What the rest of a buffer's stream is; reads as much as that takes, and consumes nothing.
Content look_at(ByteBuffer& buffer);

/// A UserError for what is no text.
void require_text(const Content& content, std::string_view name);

/// What a user should know of content that is taken as text; empty: nothing.
std::string text_warning(const Content& content, std::string_view name);

/// Whether text is UTF-8, and what a user should know if it is not. `is_cut`: its last character may be cut off.
bool is_utf8(std::string_view text, bool is_cut = false);
std::string encoding_warning(std::string_view name);

/// Whether a name, or what is left of it without an ending for compression, has an ending, in capitals or not.
bool has_ending(std::string_view name, std::string_view ending);

/// Whether a name says that it is text, so that JSON lines under it are taken as text.
bool is_named_text(std::string_view name);

}  // namespace tokamak
