#include "data/sources/content.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "data/sources/compression.h"
#include "data/sources/table_rows.h"

namespace tokamak {

namespace {

using namespace std::string_view_literals;
using Form = Content::Form;

constexpr std::string_view kBlanks = " \t\r\n";

/// One that its bytes at a place tell.
struct Magic {
  size_t place;
  std::string_view bytes, what, advice;
};

constexpr Magic kMagics[] = {
    {0, "PK\x03\x04"sv, "a zip archive", "unpack it, and name the folder"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", "unpack it, and name the folder"},
    {0, "PAR1\x15"sv, "Parquet", "name it so, *.parquet, or its format (parquet)"},
    {0, "ARROW1\0\0"sv, "Arrow", "name it so, *.arrow, or its format (arrow)"},
    {0, "%PDF-"sv, "a PDF document", "take the text out of it (pdftotext)"},
    {0, "\xff\xfe"sv, "UTF-16", "convert it to UTF-8 (iconv -f utf-16 -t utf-8)"},
    {0, "\xfe\xff"sv, "UTF-16", "convert it to UTF-8 (iconv -f utf-16 -t utf-8)"},
    {257, "ustar"sv, "a tar archive", "name its format (webdataset)"},
};

constexpr Content kBytesOfZero = {.form = Form::kOther,
                                  .what = "bytes of zero",
                                  .advice = "convert it (UTF-16 is to become UTF-8), name its format, or leave it out"};
constexpr Content kCompressed = {
    .form = Form::kOther, .what = "compressed data (once more, if the file is unpacked)", .advice = "unpack it first"};
constexpr Content kJsonLines = {.form = Form::kJsonLines,
                                .what = "JSON lines",
                                .taken = "text with its brackets and quotes",
                                .advice = "`tokamak prepare --format=jsonl` takes a field of each line"};
constexpr Content kJsonObject = {
    .form = Form::kDoubtful,
    .what = "JSON",
    .taken = "text with its brackets and quotes",
    .advice = "to train on a field of it, write each object on one line (jq -c .), and name --format=jsonl"};
constexpr Content kJsonArray = {
    .form = Form::kDoubtful,
    .what = "JSON",
    .taken = "text with its brackets and quotes",
    .advice = "to train on a field of its objects, write each on one line (jq -c '.[]'), and name --format=jsonl"};
constexpr Content kTable = {.form = Form::kDoubtful,
                            .what = "a table",
                            .taken = "text with all its columns",
                            .advice = "to train on one column alone, name it: --format=csv --field=COLUMN"};
constexpr Content kNotUtf8 = {.form = Form::kDoubtful,
                              .what = "not UTF-8",
                              .taken = "bytes as they are",
                              .advice = "if it is Latin-1, convert it (iconv -f latin1 -t utf-8)"};

/// What is no text.
std::optional<Content> other_than_text(std::string_view begin) {
  for (const Magic& magic : kMagics)
    if (begin.size() > magic.place && begin.substr(magic.place).starts_with(magic.bytes))
      return Content{.form = Form::kOther, .what = magic.what, .advice = magic.advice};
  if (is_compressed(begin)) return kCompressed;
  if (begin.substr(0, kContentBegin).find('\0') != begin.npos) return kBytesOfZero;
  return std::nullopt;
}

/// Text from its first character on that is neither blank nor a mark.
std::string_view without_blanks(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

/// An object's brace and its first name.
bool begins_as_object(std::string_view text) {
  text = without_blanks(text);
  return text.starts_with('{') && without_blanks(text.substr(1)).starts_with('"');
}

/// An array of objects, lists or strings.
bool begins_as_array(std::string_view text) {
  text = without_blanks(text);
  if (!text.starts_with('[')) return false;
  text = without_blanks(text.substr(1));
  return text.starts_with('{') || text.starts_with('"');
}

/// A line that ends as an object does, and the beginning of another one.
bool has_two_objects(std::string_view text) {
  text = without_blanks(text);
  size_t end = text.find('\n');
  if (end == text.npos) return false;
  std::string_view first = text.substr(0, end);
  size_t last = first.find_last_not_of(kBlanks);
  return last != first.npos && first[last] == '}' && begins_as_object(text.substr(end));
}

/// Whether more would show whether there is a second line.
bool is_inside_first_line(std::string_view text) {
  text = without_blanks(text);
  size_t end = text.find('\n');
  return end == text.npos || without_blanks(text.substr(end)).size() < 2;
}

}  // namespace

// Most text is ASCII, eight bytes of which are told at once.
bool is_utf8(std::string_view text, bool is_cut) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  for (size_t i = 0; i < text.size();) {
    uint64_t eight = kHighBits;
    if (i + sizeof eight <= text.size()) std::memcpy(&eight, text.data() + i, sizeof eight);
    if ((eight & kHighBits) == 0) {
      i += sizeof eight;
      continue;
    }
    auto first = static_cast<unsigned char>(text[i]);
    size_t length = first < 0x80 ? 1 : (first >> 5) == 6 ? 2 : (first >> 4) == 14 ? 3 : (first >> 3) == 30 ? 4 : 0;
    if (length == 0 || (!is_cut && i + length > text.size())) return false;
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

std::string encoding_warning(std::string_view name) { return text_warning(kNotUtf8, name); }

bool has_ending(std::string_view name, std::string_view ending) {
  name = without_compression_ending(name);
  auto same = [](char b, char a) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return name.size() >= ending.size() &&
         std::equal(ending.begin(), ending.end(), name.end() - std::ptrdiff_t(ending.size()), same);
}

bool is_named_text(std::string_view name) { return has_ending(name, ".txt") || has_ending(name, ".md"); }

Content look_at(std::string_view begin, std::string_view name) {
  if (auto other = other_than_text(begin)) return *other;
  if (begins_as_object(begin) && has_two_objects(begin)) return kJsonLines;
  begin = begin.substr(0, kContentBegin);
  if (begins_as_array(begin)) return kJsonArray;
  if (has_ending(name, ".json") || begins_as_object(begin)) return kJsonObject;
  if (has_ending(name, ".csv") || has_ending(name, ".tsv") || has_table_rows(begin)) return kTable;
  if (!is_utf8(begin, begin.size() == kContentBegin)) return kNotUtf8;
  return {};
}

Content look_at(ByteBuffer& buffer) {
  buffer.hold(kContentBegin);
  if (begins_as_object(buffer.view()))
    while (is_inside_first_line(buffer.view()) && buffer.view().size() < kFirstJsonLine && buffer.fill()) continue;
  return look_at(buffer.view(), buffer.stream().name());
}

void require_text(const Content& content, std::string_view name) {
  if (content.form == Form::kOther)
    user_error("[data] {}: expected text, got {}; {}", name, content.what, content.advice);
}

std::string text_warning(const Content& content, std::string_view name) {
  if (content.form == Form::kText || content.form == Form::kOther) return "";
  return fmt::format("{} is {}, and is taken as {}; {}", name, content.what, content.taken, content.advice);
}

}  // namespace tokamak
