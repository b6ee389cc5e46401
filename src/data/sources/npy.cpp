#include "data/sources/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// The values of the header, as the text of a Python dictionary spells them.
struct Fields {
  std::string_view descr;
  std::string_view fortran_order;
  std::string_view shape;
};

/// Reads a dictionary of literals: {'key': value, ...}, where values are text in quotes, words, tuples or lists.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  /// Nothing if it is no such text, or lacks a key or has another.
  std::optional<Fields> read() {
    Fields fields;
    if (!take('{')) return {};
    while (!take('}')) {
      std::string_view key = value();
      std::string_view* field = key == "'descr'"           ? &fields.descr
                                : key == "'fortran_order'" ? &fields.fortran_order
                                : key == "'shape'"         ? &fields.shape
                                                           : nullptr;
      if (!field || !field->empty() || !take(':')) return {};
      *field = value();
      if (field->empty()) return {};
      if (!take(',')) {
        if (!take('}')) return {};
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size() || fields.descr.empty() || fields.fortran_order.empty() || fields.shape.empty()) return {};
    return fields;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// The text of one value; empty if there is none.
  std::string_view value() {
    skip_blanks();
    size_t begin = at_;
    int depth = 0;
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '\'') quoted = !quoted;
      if (quoted) continue;
      if (c == '(' || c == '[') ++depth;
      if (depth == 0 && (c == ',' || c == ':' || c == '}' || c == ' ')) break;
      if (c == ')' || c == ']') --depth;
    }
    return text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// '<u2' and the like; '|u1' is a byte, which has no byte order.
std::optional<TokenType> parse_descr(std::string_view descr) {
  if (descr.size() != 5 || descr.front() != '\'' || descr.back() != '\'') return {};
  char order = descr[1], kind = descr[2];
  int bytes = descr[3] - '0';
  if ((kind != 'u' && kind != 'i') || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return {};
  if (order != '<' && !(order == '|' && bytes == 1)) return {};
  return TokenType{bytes, kind == 'i'};
}

/// "(5,)"; nothing for other numbers of dimensions.
std::optional<int64_t> parse_shape(std::string_view shape) {
  if (!shape.starts_with('(') || !shape.ends_with(",)")) return {};
  shape = shape.substr(1, shape.size() - 3);
  int64_t count = 0;
  auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), count);
  if (error != std::errc() || end != shape.data() + shape.size() || count < 0) return {};
  return count;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void refuse_header(std::string_view name) {
  user_error(
      "[npy] {}: expected the header of an array of integers, got a damaged one or that of something else; copy "
      "it again",
      name);
}

/// The dictionary's text, and the place where it ends.
std::pair<std::string_view, int64_t> find_dictionary(std::string_view text, std::string_view name) {
  if (text.substr(0, kMagic.size()) != kMagic)
    user_error("[npy] {}: expected the magic bytes \\x93NUMPY, got others; this is not a NumPy file", name);
  if (text.size() < 12) refuse_header(name);
  int version = uint8_t(text[6]);
  if (version < 1 || version > 3) user_error("[npy] {}: expected version 1, 2 or 3, got {}", name, version);
  size_t begin = version == 1 ? 10 : 12, length = 0;
  for (size_t i = begin; i-- > 8;) length = length << 8 | uint8_t(text[i]);
  if (length > text.size() - begin) refuse_header(name);
  return {text.substr(begin, length), int64_t(begin + length)};
}

[[noreturn]] void refuse_length(std::string_view name, const NpyHeader& header, const std::string& got) {
  user_error(
      "[npy] {}: expected {} elements of {} bytes behind a header of {} bytes, got {}; it is damaged or cut "
      "short: copy it again",
      name, header.run.tokens, header.type.bytes, header.run.offset, got);
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view name) {
  auto [dictionary, offset] = find_dictionary(as_text(bytes), name);
  std::optional<Fields> fields = DictionaryReader(dictionary).read();
  if (!fields) refuse_header(name);
  std::optional<TokenType> type = parse_descr(fields->descr);
  if (!type)
    user_error(
        "[npy] {}: expected integers in little-endian order such as '<u2' or '<u4', got {}; save it as uint16 "
        "or uint32",
        name, fields->descr);
  std::optional<int64_t> count = parse_shape(fields->shape);
  if (!count)
    user_error("[npy] {}: expected an array with one dimension, got one of shape {}; save it flat", name,
               fields->shape);
  if (fields->fortran_order != "False" && fields->fortran_order != "True") refuse_header(name);
  return {*type, {offset, *count}};  // in C and in Fortran order one dimension is the same
}

NpyHeader read_npy_header(const FileReader& file, int64_t offset, int64_t bytes, std::string_view name) {
  std::vector<std::byte> head(size_t(std::min(bytes, kNpyHeadBytes)));
  file.read(offset, head);
  NpyHeader header = parse_npy_header(head, name);
  TokenRun run = header.run;
  if (run.tokens > (bytes - run.offset) / header.type.bytes || run.offset + run.tokens * header.type.bytes != bytes)
    refuse_length(name, header, fmt::format("a file of {} bytes", bytes));
  header.run.offset += offset;
  return header;
}

namespace {

std::unique_ptr<TokenArray> open_npy(const std::filesystem::path& path, const SourceOptions&) {
  FileReader file(path);
  NpyHeader header = read_npy_header(file, 0, file.size(), path.string());
  return std::make_unique<FileTokens>(std::move(file), header.type, std::vector{header.run});
}

std::unique_ptr<Source> open_npy_source(const std::filesystem::path& path, const SourceOptions& options) {
  return read_npy(open_bytes(path, options), options);
}

class NpySource final : public Source {
 public:
  NpySource(std::unique_ptr<ByteStream> stream, const SourceOptions& options)
      : buffer_(std::move(stream)), part_bytes_(options.part_bytes) {
    buffer_.hold(size_t(kNpyHeadBytes));
    header_ = parse_npy_header(std::as_bytes(std::span(buffer_.view())), name());
    buffer_.consume(size_t(header_.run.offset));
  }

  bool next(Document& document) override {
    int64_t left = header_.run.tokens - read_;
    if (left == 0) {
      if (!buffer_.view().empty() || buffer_.fill()) refuse_length(name(), header_, "more");
      return false;
    }
    ids_.resize(size_t(std::min(left, std::max<int64_t>(part_bytes_ / int64_t(sizeof(int32_t)), 1))));
    size_t bytes = ids_.size() * size_t(header_.type.bytes);
    buffer_.hold(bytes);
    if (buffer_.view().size() < bytes) refuse_length(name(), header_, "the end before");
    widen_checked(header_.type, std::as_bytes(std::span(buffer_.view())).data(), ids_, name(), read_);
    buffer_.consume(bytes);
    read_ += int64_t(ids_.size());
    document = {.text = {}, .tokens = ids_, .continues = read_ < header_.run.tokens};
    return true;
  }

  const std::string& name() const override { return buffer_.stream().name(); }
  int64_t bytes_read() const override { return buffer_.stream().bytes_read(); }
  int64_t total_bytes() const override { return buffer_.stream().total_bytes(); }

 private:
  ByteBuffer buffer_;
  int64_t part_bytes_;
  NpyHeader header_;
  std::vector<int32_t> ids_;
  int64_t read_ = 0;  // tokens
};

}  // namespace

std::unique_ptr<Source> read_npy(std::unique_ptr<ByteStream> stream, const SourceOptions& options) {
  return std::make_unique<NpySource>(std::move(stream), options);
}

const TokenReader npy_tokens = {.open = open_npy};
const DocumentReader npy_documents = {.open = open_npy_source, .streams = true};

}  // namespace tokamak
