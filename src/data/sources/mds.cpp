// Shards of MosaicML's streaming format (MDS): one column of each sample is a document, as text or as tokens.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/source_notes.h"
#include "data/sources/document_checks.h"
#include "data/sources/mds_hashes.h"
#include "data/sources/mds_shard.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace {

using Kind = MdsEncoding::Kind;

/// The types of ndarrays that say their own, by the codes that stand before them.
std::optional<TokenType> type_of_code(unsigned char code) {
  bool is_signed = code % 2 == 1;
  int bytes = code / 8;
  if (code % 8 > 1 || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return std::nullopt;
  return TokenType{bytes, is_signed};
}

class MdsSource : public Source {
 public:
  MdsSource(std::unique_ptr<ByteStream> stream, const SourceOptions& options)
      : options_(options), most_bytes_(most_document_bytes(options)), buffer_(std::move(stream)) {
    if (options.conversations)
      user_error("[mds] {}: expected JSON objects for --chat, got samples of MDS; write them as JSON lines", name());
    header_ = read_mds_header(buffer_);
    find_column();
  }

  bool next(Document& document) override {
    for (;;) {
      buffer_.consume(std::exchange(used_, 0));
      if (number_ + 1 >= header_.offsets.size()) break;
      std::string_view sample = next_sample();
      std::string_view value = mds_value(sample, header_.columns, column_, place());
      document = encoding_.kind == Kind::kTokens ? Document{.text = {}, .tokens = tokens_of(value)}
                                                 : Document{.text = text_of(value)};
      if (!document.text.empty() || !document.tokens.empty()) return true;
    }
    if (buffer_.hold(1); !buffer_.view().empty())
      user_error("[mds] {}: expected its end behind {} samples, got more bytes; copy or download it again", name(),
                 number_);
    return false;
  }

  const std::string& name() const override { return buffer_.stream().name(); }
  int64_t bytes_read() const override { return buffer_.stream().bytes_read(); }
  int64_t total_bytes() const override { return buffer_.stream().total_bytes(); }

 private:
  void find_column() {
    auto& columns = header_.columns;
    auto is_named = [&](const MdsColumn& column) { return column.name == options_.text_field; };
    auto found = std::find_if(columns.begin(), columns.end(), is_named);
    if (found != columns.end()) encoding_ = parse_mds_encoding(found->encoding);
    column_ = size_t(found - columns.begin());
    if (found == columns.end() || encoding_.kind == Kind::kOther)
      user_error(
          "[mds] {}: expected a column \"{}\" of text, integers or an array of them, got {}{}; name one with "
          "--field",
          name(), options_.text_field, found == columns.end() ? "" : "one of " + found->encoding + ", of ",
          shown_columns());
  }

  std::string shown_columns() const {
    constexpr size_t kShown = 20;
    std::string list;
    for (size_t i = 0; i < std::min(header_.columns.size(), kShown); ++i)
      list += fmt::format("{}\"{}\" ({})", i == 0 ? "" : ", ", header_.columns[i].name, header_.columns[i].encoding);
    return list + (header_.columns.size() > kShown ? ", ..." : "");
  }

  std::string place() const { return fmt::format("{} sample {}", name(), number_); }

  std::string_view next_sample() {
    size_t size = header_.offsets[number_ + 1] - header_.offsets[number_];
    ++number_;
    if (size > most_bytes_)
      user_error("[mds] {}: expected at most {} bytes, got {}; leave it out", place(), most_bytes_, size);
    buffer_.hold(size);
    if (buffer_.view().size() < size)
      user_error("[mds] {}: expected {} bytes, got {}; the shard is cut short: copy or download it again", place(),
                 size, buffer_.view().size());
    used_ = size;
    return buffer_.view().substr(0, size);
  }

  std::string_view text_of(std::string_view value) {
    if (encoding_.kind == Kind::kInteger) return integer_of(value);
    if (encoding_.kind == Kind::kBytes && value.find('\0') != value.npos)
      user_error(
          "[mds] {}: expected text in column \"{}\", got bytes of zero; if they are tokens, write the column as "
          "ndarray:int32",
          place(), options_.text_field);
    note_encoding(options_, value, place());
    return value;
  }

  std::string_view integer_of(std::string_view value) {
    if (value.size() != size_t(encoding_.type->bytes))
      refuse_value(value, fmt::format("{} bytes", encoding_.type->bytes));
    uint64_t bits = 0;
    for (size_t i = 0; i < value.size(); ++i) bits |= uint64_t(static_cast<unsigned char>(value[i])) << (8 * i);
    size_t unused = 64 - 8 * value.size();
    integer_ =
        encoding_.type->is_signed ? fmt::format("{}", int64_t(bits << unused) >> unused) : fmt::format("{}", bits);
    return integer_;
  }

  /// An array: its type and its length, each where the encoding does not say it, and its values.
  std::span<const int32_t> tokens_of(std::string_view value) {
    std::string_view left = value;
    std::optional<TokenType> type = encoding_.type;
    if (!type) {
      type = left.empty() ? std::nullopt : type_of_code(static_cast<unsigned char>(left[0]));
      if (!type) refuse_value(value, "an array of integers");
      left.remove_prefix(1);
    }
    if (encoding_.has_shape) left = without_shape(left, type->bytes);
    if (left.size() % size_t(type->bytes) != 0) refuse_value(value, "whole integers");
    tokens_.resize(left.size() / size_t(type->bytes));
    widen_checked(*type, reinterpret_cast<const std::byte*>(left.data()), tokens_, place(), 0);
    return tokens_;
  }

  /// The first byte has the number of dimensions, and in its two lowest bits how many bytes (as a power of 2) each
  /// length takes.
  std::string_view without_shape(std::string_view value, int token_bytes) const {
    unsigned char first = value.empty() ? 0 : static_cast<unsigned char>(value[0]);
    size_t bytes = size_t(1) << (first & 3);
    if (first >> 2 != 1 || value.size() < 1 + bytes) refuse_value(value, "an array with one dimension");
    uint64_t length = 0;
    for (size_t i = 0; i < bytes; ++i) length |= uint64_t(static_cast<unsigned char>(value[1 + i])) << (8 * i);
    value.remove_prefix(1 + bytes);
    if (value.size() / size_t(token_bytes) != length || value.size() % size_t(token_bytes) != 0)
      refuse_value(value, fmt::format("{} integers", length));
    return value;
  }

  [[noreturn]] void refuse_value(std::string_view value, std::string_view expected) const {
    user_error(
        "[mds] {}: expected {} in column \"{}\" ({}), got {} bytes of another form; name another column, or copy "
        "the shard again",
        place(), expected, options_.text_field, header_.columns[column_].encoding, value.size());
  }

  SourceOptions options_;
  size_t most_bytes_;
  ByteBuffer buffer_;
  MdsHeader header_;
  MdsEncoding encoding_;
  size_t column_ = 0, number_ = 0;  // samples given
  size_t used_ = 0;                 // bytes of the last sample
  std::string integer_;
  std::vector<int32_t> tokens_;
};

/// The shard's bytes, which at their end must have the hashes of its index.
std::unique_ptr<ByteStream> open_checked(const std::filesystem::path& path, const SourceOptions& options) {
  Hashes hashes = options.mds_hashes->of(path);
  for (const auto& [name, hex] : hashes)
    if (!open_digest(name))
      note(options, "hashes that are not checked",
           fmt::format("warning: [mds] {}: its hashes by {} are not checked, as this program does not know them{}",
                       (path.parent_path() / "index.json").string(), name,
                       open_digest("sha1") ? "" : " (it was built without libssl-dev)"));
  return with_hashes(open_bytes(path, options), hashes, "index.json");
}

std::unique_ptr<Source> open(const std::filesystem::path& path, const SourceOptions& options) {
  return std::make_unique<MdsSource>(open_checked(path, options), options);
}

}  // namespace

const DocumentReader mds_documents = {.open = open, .streams = true, .looks = true};

}  // namespace tokamak
