#include "data/sources/text.h"

#include <algorithm>

#include "base/error.h"
#include "data/source_notes.h"
#include "data/sources/content.h"
#include "data/sources/jsonl.h"
#include "data/sources/source_format.h"
#include "data/word_border.h"

namespace tokamak {

namespace {

constexpr size_t kMostParts = 8;  // in memory at once, where there is no place to cut

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The last place up to `end` (inside the text) that is not inside a character of UTF-8; `end` in other encodings.
size_t character_border(std::string_view text, size_t end) {
  for (size_t at = end; at > 0 && end - at < 4; --at)
    if (!is_inside_character(text[at])) return at;
  return end;
}

class TextSource : public Source {
 public:
  TextSource(ByteBuffer buffer, const SourceOptions& options)
      : buffer_(std::move(buffer)), separator_(options.separator), part_bytes_(size_t(options.part_bytes)) {
    buffer_.hold(kByteOrderMark.size());
    if (buffer_.view().starts_with(kByteOrderMark)) buffer_.consume(kByteOrderMark.size());
  }

  bool next(Document& document) override {
    buffer_.consume(handed_out_);
    handed_out_ = 0;
    while (skip_separator()) skip_line_break();
    document = next_part();
    handed_out_ = document.text.size();
    return handed_out_ > 0;
  }

  const std::string& name() const override { return buffer_.stream().name(); }
  int64_t bytes_read() const override { return buffer_.stream().bytes_read(); }
  int64_t total_bytes() const override { return buffer_.stream().total_bytes(); }

 private:
  bool skip_separator() {
    if (separator_.empty()) return false;
    buffer_.hold(separator_.size());
    if (!buffer_.view().starts_with(separator_)) return false;
    buffer_.consume(separator_.size());
    return true;
  }

  void skip_line_break() {
    buffer_.hold(2);
    size_t size = buffer_.view().starts_with("\r\n") ? 2 : buffer_.view().starts_with('\n') ? 1 : 0;
    buffer_.consume(size);
  }

  /// The text up to the next separator or the end, or the first part of it. No separator begins where a part ends, as
  /// that would have ended the text; so what follows a part is never empty.
  Document next_part() {
    for (size_t limit = part_bytes_;; limit += part_bytes_) {
      buffer_.hold(limit + separator_.size() + 1);
      std::string_view text = buffer_.view();
      if (!separator_.empty()) text = text.substr(0, text.find(separator_));
      if (text.size() <= limit) return {.text = text};
      size_t cut = last_cut(text.substr(0, limit + 1));
      if (cut == text.npos && limit >= kMostParts * part_bytes_) cut = character_border(text, limit);
      if (cut != text.npos) return {.text = text.substr(0, cut), .continues = true};
    }
  }

  ByteBuffer buffer_;
  std::string separator_;
  size_t part_bytes_;
  size_t handed_out_ = 0;
};

std::unique_ptr<Source> open(const std::filesystem::path& path, const SourceOptions& options) {
  std::unique_ptr<ByteStream> stream = open_bytes(path, options);
  if (options.format == "text") return std::make_unique<TextSource>(ByteBuffer(std::move(stream)), options);
  return read_text(std::move(stream), options);
}

}  // namespace

std::unique_ptr<Source> read_text(std::unique_ptr<ByteStream> stream, const SourceOptions& options) {
  std::string name = stream->name();
  ByteBuffer buffer(std::move(stream));
  Content content = look_at(buffer);
  require_text(content, name);
  if (content.form == Content::Form::kJsonLines && !is_named_text(name)) {
    note_json_lines(options, name);
    return read_jsonl(rest_of(std::move(buffer)), options);
  }
  if (std::string warning = text_warning(content, name); !warning.empty())
    note(options, content.what, "warning: " + warning);
  return std::make_unique<TextSource>(std::move(buffer), options);
}

void note_json_lines(const SourceOptions& options, const std::string& name) {
  note(options, "JSON lines",
       fmt::format("{} is JSON lines: the field \"{}\" of each is a document; --format=text takes all as it is", name,
                   options.text_field));
}

const DocumentReader text_documents = {.open = open, .streams = true, .looks = true};

}  // namespace tokamak
