#include "data/sources/megatron.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "data/sources/source_format.h"
#include "data/sources/token_source.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};

/// Little-endian numbers of a file, one after the other, read in pieces.
template <typename Number>
class NumberStream {
 public:
  NumberStream(const FileReader& file, int64_t offset, int64_t count) : file_(file), offset_(offset), left_(count) {}

  /// The next number; `count` of them exist.
  Number next() {
    if (at_ == buffer_.size()) refill();
    return buffer_[at_++];
  }

 private:
  void refill() {
    TOKAMAK_CHECK(left_ > 0, "no number left in {}", file_.path().string());
    buffer_.resize(size_t(std::min<int64_t>(left_, 1 << 16)));
    file_.read(offset_, std::as_writable_bytes(std::span(buffer_)));
    offset_ += int64_t(buffer_.size() * sizeof(Number));
    left_ -= int64_t(buffer_.size());
    at_ = 0;
  }

  const FileReader& file_;
  int64_t offset_;
  int64_t left_;
  std::vector<Number> buffer_;
  size_t at_ = 0;
};

TokenType type_of(int code, const std::string& name) {
  switch (code) {
    case 1: return {1, false};
    case 2: return {1, true};
    case 3: return {2, true};
    case 4: return {4, true};
    case 5: return {8, true};
    case 8: return {2, false};
    default:
      user_error(
          "[megatron] {}: expected a type of integers (1 to 5, or 8 for uint16), got {}; the index is damaged "
          "or its data are no tokens",
          name, code);
  }
}

struct Header {
  TokenType type;
  int64_t sequences;
  int64_t documents;
};

Header read_header(const FileReader& file) {
  std::string name = file.path().string();
  std::array<std::byte, 34> bytes = {};
  file.read(0, std::span(bytes).first(size_t(std::min<int64_t>(file.size(), int64_t(bytes.size())))));
  auto number = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    user_error("[megatron] {}: expected the magic bytes MMIDIDX, got others; this is not a Megatron index", name);
  if (file.size() < int64_t(bytes.size()))
    user_error("[megatron] {}: expected a header of {} bytes, got a file of {} bytes; it is cut short: copy it again",
               name, bytes.size(), file.size());
  if (number(9) != 1) user_error("[megatron] {}: expected version 1, got {}", name, number(9));
  TokenType type = type_of(int(bytes[17]), name);
  uint64_t sequences = number(18), marks = number(26), size = uint64_t(file.size());
  // The first test keeps the sums of the second below overflow.
  if (sequences > size || marks > size || 34 + 12 * sequences + 8 * marks != size)
    user_error(
        "[megatron] {}: expected 34 bytes, 12 for each of {} sequences and 8 for each of {} document marks, got "
        "a file of {} bytes; it is damaged or cut short: copy it again",
        name, sequences, marks, size);
  if (marks == 0) user_error("[megatron] {}: expected at least one document mark, got none; it is damaged", name);
  return {type, int64_t(sequences), int64_t(marks) - 1};
}

/// Checks that sequences follow each other, and sums their lengths.
int64_t check_sequences(const MegatronIndex& index) {
  std::string name = index.file.path().string();
  NumberStream<int32_t> lengths(index.file, index.lengths_offset(), index.sequences);
  NumberStream<int64_t> pointers(index.file, index.pointers_offset(), index.sequences);
  int64_t tokens = 0;
  for (int64_t i = 0; i < index.sequences; ++i) {
    int32_t length = lengths.next();
    int64_t pointer = pointers.next();
    if (length < 0)
      user_error("[megatron] {}: expected a length of at least 0 for sequence {}, got {}; it is damaged", name, i,
                 length);
    if (pointer != tokens * index.type.bytes)
      user_error(
          "[megatron] {}: expected sequence {} at byte {}, behind the one before, got {}; the index is damaged, "
          "or made by a tool that leaves gaps, which is not supported",
          name, i, tokens * index.type.bytes, pointer);
    tokens += length;
  }
  return tokens;
}

void check_documents(const MegatronIndex& index) {
  NumberStream<int64_t> firsts(index.file, index.documents_offset(), index.documents + 1);
  int64_t last = 0;
  for (int64_t i = 0; i <= index.documents; ++i) {
    int64_t first = firsts.next();
    bool right = i == 0 ? first == 0 : first >= last && first <= index.sequences;
    if (!right || (i == index.documents && first != index.sequences))
      user_error(
          "[megatron] {}: expected the marks of documents to go up from 0 to {} sequences, got {} as mark {}; it "
          "is damaged",
          index.file.path().string(), index.sequences, first, i);
    last = first;
  }
}

/// Lengths of documents in tokens, one after the other.
class DocumentLengths {
 public:
  explicit DocumentLengths(MegatronIndex index)
      : index_(std::move(index)), left_(index_.documents),
        lengths_(index_.file, index_.lengths_offset(), index_.sequences),
        marks_(index_.file, index_.documents_offset(), index_.documents + 1), mark_(marks_.next()) {}

  std::optional<int64_t> next() {
    if (left_-- <= 0) return {};
    int64_t tokens = 0;
    for (int64_t end = marks_.next(); mark_ < end; ++mark_) tokens += lengths_.next();
    return tokens;
  }

 private:
  MegatronIndex index_;
  int64_t left_;
  NumberStream<int32_t> lengths_;
  NumberStream<int64_t> marks_;
  int64_t mark_;
};

fs::path with_ending(fs::path path, const char* ending) { return path.replace_extension(ending); }

std::unique_ptr<TokenArray> open_bin(const MegatronIndex& index) {
  FileReader file(with_ending(index.file.path(), ".bin"));
  int64_t expected = index.tokens * index.type.bytes;
  if (file.size() != expected)
    user_error(
        "[megatron] {}: expected {} bytes for the {} tokens of type {} in {}, got {} bytes; one of the two is "
        "damaged or cut short: copy both again",
        file.path().string(), expected, index.tokens, type_name(index.type), index.file.path().string(), file.size());
  TokenRun whole = {0, index.tokens};
  return std::make_unique<FileTokens>(std::move(file), index.type, std::vector{whole}, std::vector{index.file.path()});
}

std::unique_ptr<TokenArray> open_megatron(const fs::path& path, const SourceOptions&) {
  return open_bin(open_megatron_index(with_ending(path, ".idx")));
}

std::unique_ptr<Source> open_megatron_source(const fs::path& path, const SourceOptions& options) {
  MegatronIndex index = open_megatron_index(with_ending(path, ".idx"));
  std::unique_ptr<TokenArray> tokens = open_bin(index);
  auto lengths = std::make_shared<DocumentLengths>(std::move(index));
  return token_source(
      path, std::move(tokens), [lengths] { return lengths->next(); }, options);
}

}  // namespace

MegatronIndex open_megatron_index(const fs::path& path) {
  FileReader file(path);
  Header header = read_header(file);
  MegatronIndex index = {std::move(file), header.type, header.sequences, header.documents};
  index.tokens = check_sequences(index);
  check_documents(index);
  return index;
}

bool is_megatron(const fs::path& path) {
  std::error_code error;  // a folder that may not be read shows when the file is opened
  return path.extension() == ".bin" && fs::exists(with_ending(path, ".idx"), error);
}

const TokenReader megatron_tokens = {.open = open_megatron};
const DocumentReader megatron_documents = {.open = open_megatron_source};

}  // namespace tokamak
