#include "data/sources/text_begin.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace tokamak {

namespace {

using namespace std::string_view_literals;

/// A kind of file that is no text.
struct Kind {
  std::string_view name, advice;
};

/// One that its first bytes tell.
struct Magic {
  std::string_view begin;
  Kind kind;
};

constexpr Magic kMagics[] = {
    {"PK\x03\x04"sv, {"a zip archive", "unpack it, and name the folder"}},
    {"\xfd"
     "7zXZ\0"sv,
     {"xz-compressed data", "unpack it (unxz), or compress it with zstd instead"}},
    {"7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", "unpack it, and name the folder"}},
    {"PAR1\x15"sv, {"Parquet", "write its column of text as JSONL, an object a line"}},
    {"%PDF-"sv, {"a PDF document", "take the text out of it (pdftotext)"}},
    {"\xff\xfe"sv, {"UTF-16", "convert it to UTF-8 (iconv -f utf-16 -t utf-8)"}},
    {"\xfe\xff"sv, {"UTF-16", "convert it to UTF-8 (iconv -f utf-16 -t utf-8)"}},
};

/// "BZh", a digit, and the magic number of a block.
bool is_bzip2(std::string_view begin) { return begin.starts_with("BZh") && begin.substr(4, 6) == "1AY&SY"; }

/// What the beginning of a file is that is refused as text.
std::optional<Kind> kind_other_than_text(std::string_view begin) {
  for (const Magic& magic : kMagics)
    if (begin.starts_with(magic.begin)) return magic.kind;
  if (is_bzip2(begin)) return Kind{"bzip2-compressed data", "unpack it (bunzip2), or compress it with zstd instead"};
  if (begin.find('\0') != begin.npos)
    return Kind{"bytes of zero", "convert it (UTF-16 is to become UTF-8), or name its format"};
  return std::nullopt;
}

/// Whether text is UTF-8 up to a character that may be cut off at its end.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto first = static_cast<unsigned char>(text[i]);
    size_t length = first < 0x80 ? 1 : (first >> 5) == 6 ? 2 : (first >> 4) == 14 ? 3 : (first >> 3) == 30 ? 4 : 0;
    if (length == 0) return false;
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

bool is_named(std::string_view name, std::string_view ending) {
  auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return name.size() >= ending.size() &&
         std::equal(ending.begin(), ending.end(), name.end() - std::ptrdiff_t(ending.size()),
                    [&](char b, char a) { return same(a, b); });
}

/// An array of objects, lists or strings.
bool is_json_array(std::string_view begin) {
  size_t at = begin.find_first_not_of(" \t\r\n");
  if (at == begin.npos || begin[at] != '[') return false;
  at = begin.find_first_not_of(" \t\r\n", at + 1);
  return at != begin.npos && (begin[at] == '{' || begin[at] == '"');
}

}  // namespace

void refuse_other_than_text(std::string_view begin, std::string_view name) {
  if (auto kind = kind_other_than_text(begin))
    user_error("[data] {}: expected text, got {}; {}", name, kind->name, kind->advice);
}

std::string text_warning(std::string_view begin, std::string_view name) {
  if (kind_other_than_text(begin)) return "";
  if (is_named(name, ".csv") || is_named(name, ".tsv"))
    return fmt::format(
        "{} is a table, and is taken as text with all its columns; write the column of text as JSONL to "
        "train on it alone",
        name);
  if (is_named(name, ".json") || is_json_array(begin))
    return fmt::format(
        "{} is JSON, and is taken as text with its brackets and quotes; write it as JSONL, an object a "
        "line, to train on a field of it",
        name);
  if (!is_utf8(begin))
    return fmt::format(
        "{} is not UTF-8, and its bytes are taken as they are; if it is Latin-1, convert it (iconv -f "
        "latin1 -t utf-8)",
        name);
  return "";
}

}  // namespace tokamak
