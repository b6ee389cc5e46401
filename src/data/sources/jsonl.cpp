#include "data/sources/jsonl.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/conversation.h"
#include "data/sources/content.h"
#include "data/sources/document_checks.h"
#include "data/sources/json_field.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace {

/// What training wants of an object.
class ObjectReader {
 public:
  explicit ObjectReader(const SourceOptions& options)
      : field_(options.text_field), conversations_(options.conversations) {}

  LearnedText read(std::string_view object, const std::string& place, std::string_view else_do) const {
    if (conversations_) return conversations_->read(object, place, else_do);
    return {json_text_field(object, field_, place, else_do), {}};
  }

 private:
  std::string field_;
  std::shared_ptr<const ConversationReader> conversations_;
};

class JsonlSource : public Source {
 public:
  JsonlSource(std::unique_ptr<ByteStream> stream, const SourceOptions& options)
      : buffer_(std::move(stream)), reader_(options), most_bytes_(most_document_bytes(options)),
        bad_lines_(options.bad_lines) {
    buffer_.hold(kByteOrderMark.size());
    if (buffer_.view().starts_with(kByteOrderMark)) buffer_.consume(kByteOrderMark.size());
  }

  bool next(Document& document) override {
    for (std::string_view line; next_line(line);) {
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      if (!read_text(line) || text_.text.empty()) continue;
      document = {.text = text_.text, .tokens = {}, .learned = text_.learned};
      return true;
    }
    return false;
  }

  const std::string& name() const override { return buffer_.stream().name(); }
  int64_t bytes_read() const override { return buffer_.stream().bytes_read(); }
  int64_t total_bytes() const override { return buffer_.stream().total_bytes(); }

 private:
  /// The text of a line; false if it is bad and bad ones are counted only.
  bool read_text(std::string_view line) {
    try {
      text_ = reader_.read(line, fmt::format("{} line {}", name(), number_),
                           "pass over such lines, and count them, with --skip-bad");
      return true;
    } catch (const UserError&) {
      if (!bad_lines_) throw;
      ++*bad_lines_;
      return false;
    }
  }

  /// The next line, without its end.
  bool next_line(std::string_view& line) {
    buffer_.consume(used_);
    used_ = 0;
    ++number_;
    size_t end = buffer_.view().find('\n');
    for (size_t searched = 0; end == std::string_view::npos; end = buffer_.view().find('\n', searched)) {
      searched = buffer_.view().size();
      if (searched > most_bytes_)
        user_error("[data] {} line {}: expected at most {} bytes in a line, got more; is it JSONL?", name(), number_,
                   most_bytes_);
      if (!buffer_.fill()) break;
    }
    line = buffer_.view().substr(0, end);
    used_ = std::min(line.size() + 1, buffer_.view().size());
    return used_ > 0;
  }

  ByteBuffer buffer_;
  ObjectReader reader_;
  size_t most_bytes_;
  std::shared_ptr<std::atomic<int64_t>> bad_lines_;
  size_t used_ = 0;     // bytes of the last line
  int64_t number_ = 0;  // of the last line
  LearnedText text_;
};

/// The whole stream is one object.
class JsonSource : public Source {
 public:
  JsonSource(std::unique_ptr<ByteStream> stream, const SourceOptions& options)
      : buffer_(std::move(stream)), reader_(options), most_bytes_(most_document_bytes(options)) {}

  bool next(Document& document) override {
    if (std::exchange(done_, true)) return false;
    buffer_.hold(most_bytes_ + 1);
    if (buffer_.view().size() > most_bytes_)
      user_error("[data] {}: expected a JSON object of at most {} bytes, got more", name(), most_bytes_);
    text_ = reader_.read(buffer_.view(), name(), "leave such members of an archive out with --members");
    document = {.text = text_.text, .tokens = {}, .learned = text_.learned};
    return !text_.text.empty();
  }

  const std::string& name() const override { return buffer_.stream().name(); }
  int64_t bytes_read() const override { return buffer_.stream().bytes_read(); }
  int64_t total_bytes() const override { return buffer_.stream().total_bytes(); }

 private:
  ByteBuffer buffer_;
  ObjectReader reader_;
  size_t most_bytes_;
  bool done_ = false;
  LearnedText text_;
};

std::unique_ptr<Source> open(const std::filesystem::path& path, const SourceOptions& options) {
  return read_jsonl(open_bytes(path, options), options);
}

}  // namespace

std::unique_ptr<Source> read_jsonl(std::unique_ptr<ByteStream> stream, const SourceOptions& options) {
  return std::make_unique<JsonlSource>(std::move(stream), options);
}

std::unique_ptr<Source> read_json(std::unique_ptr<ByteStream> stream, const SourceOptions& options) {
  return std::make_unique<JsonSource>(std::move(stream), options);
}

const DocumentReader jsonl_documents = {.open = open, .streams = true, .looks = true};

}  // namespace tokamak
