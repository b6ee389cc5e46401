// LMDB: the values in the order of their keys. As documents they are text, or JSON objects if the first one begins with
// a brace; as tokens they are integers of the type that the options say.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/fingerprint.h"
#include "data/source_notes.h"
#include "data/sources/content.h"
#include "data/sources/jsonl.h"
#include "data/sources/optional/lmdb_file.h"
#include "data/sources/source_format.h"
#include "data/sources/token_source.h"
#include "data/sources/token_type.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// Tokens between two marks of the index, or one value if that has more. LMDB cannot find an entry by its number, so
/// opening goes once through all keys (not the values) and keeps a mark of 24 bytes each time so many tokens have gone
/// by; reading begins at the mark before. 100 billion tokens take 36 MB of marks.
constexpr int64_t kMarkTokens = 64 << 10;

int64_t tokens_of(const LmdbFile& file, const LmdbEntry& entry, TokenType type) {
  if (entry.value.size() % size_t(type.bytes) != 0)
    user_error(
        "[lmdb] {}: expected values of {} tokens, so a multiple of {} bytes, got {} bytes under the key {}; name the "
        "type of its tokens, or, if its values are text, run `tokamak prepare` on it",
        file.path().string(), type_name(type), type.bytes, entry.value.size(), show_key(entry.key));
  return int64_t(entry.value.size()) / type.bytes;
}

/// Text of even length would pass for uint16, and its ids for those of a large vocabulary. So many bytes that are all
/// printable are no tokens.
void check_not_text(const LmdbFile& file, const LmdbEntry& entry, TokenType type) {
  constexpr size_t kEnough = 32;
  auto is_printable = [](char c) { return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r'); };
  if (entry.value.size() < kEnough || !std::all_of(entry.value.begin(), entry.value.end(), is_printable)) return;
  user_error("[lmdb] {}: expected values of {} tokens, got text under the key {}; run `tokamak prepare` on it",
             file.path().string(), type_name(type), show_key(entry.key));
}

class LmdbTokens final : public TokenArray {
 public:
  LmdbTokens(const fs::path& path, TokenType type, const SourceOptions& options) : file_(path), type_(type) {
    LmdbCursor cursor = file_.cursor();
    LmdbEntry entry;
    int64_t next_mark = 0;
    bool more = cursor.first(entry);
    if (more) {
      check_not_text(file_, entry, type_);
      std::string warning = type_warning(type_, std::as_bytes(std::span(entry.value)), path.string());
      if (!warning.empty()) note(options, "tokens of another type", warning);
    }
    for (; more; more = cursor.next(entry)) {
      int64_t count = tokens_of(file_, entry, type_);
      if (size_ >= next_mark && count > 0) {
        marks_.push_back({size_, entry.key});
        next_mark = size_ + kMarkTokens;
      }
      size_ += count;
    }
  }

  int64_t size() const override { return size_; }

  void read(int64_t begin, std::span<int32_t> out) const override {
    TOKAMAK_CHECK(begin >= 0 && begin + int64_t(out.size()) <= size_, "tokens {} to {} of {} in {}", begin,
                  begin + int64_t(out.size()), size_, file_.path().string());
    if (out.empty()) return;
    auto after = [](int64_t at, const Mark& mark) { return at < mark.begin; };
    const Mark& mark = *(std::upper_bound(marks_.begin(), marks_.end(), begin, after) - 1);
    LmdbCursor cursor = file_.borrow();
    LmdbEntry entry;
    bool more = cursor.find(mark.key, entry);
    for (int64_t at = mark.begin; !out.empty(); more = cursor.next(entry)) {
      if (!more)
        user_error(
            "[lmdb] {}: expected {} tokens, got fewer when their keys were looked up; its keys are out of order: "
            "copy it again",
            file_.path().string(), size_);
      int64_t count = tokens_of(file_, entry, type_);
      if (begin < at + count) {
        size_t copied = std::min(out.size(), size_t(at + count - begin));
        auto from = reinterpret_cast<const std::byte*>(entry.value.data()) + (begin - at) * type_.bytes;
        widen_checked(type_, from, out.first(copied), file_.path().string(), begin);
        out = out.subspan(copied);
        begin += int64_t(copied);
      }
      at += count;
    }
    file_.give_back(std::move(cursor));
  }

  Place place(int64_t at) const override { return {file_.path().string(), at, size_ - at}; }
  std::vector<FileFingerprint> fingerprints() const override { return {fingerprint_file(file_.path())}; }

 private:
  struct Mark {
    int64_t begin;         // the first token of the value
    std::string_view key;  // in the mapped file
  };

  LmdbFile file_;
  TokenType type_;
  std::vector<Mark> marks_;
  int64_t size_ = 0;
};

std::unique_ptr<TokenArray> open_lmdb_tokens(const fs::path& path, const SourceOptions& options) {
  return std::make_unique<LmdbTokens>(path, parse_token_type(options.token_type), options);
}

/// Each value is a document.
std::unique_ptr<Source> open_lmdb_token_source(const fs::path& path, const SourceOptions& options) {
  TokenType type = parse_token_type(options.token_type);
  auto file = std::make_shared<LmdbFile>(path);
  auto cursor = std::make_shared<LmdbCursor>(file->cursor());
  NextLength next = [file, cursor, type, begun = false]() mutable -> std::optional<int64_t> {
    LmdbEntry entry;
    bool more = begun ? cursor->next(entry) : cursor->first(entry);
    begun = true;
    if (!more) return {};
    return tokens_of(*file, entry, type);
  };
  return token_source(path, open_lmdb_tokens(path, options), std::move(next), options);
}

/// A value as a stream, for the reader of JSON.
class ValueBytes final : public ByteStream {
 public:
  ValueBytes(std::string name, std::string_view value)
      : name_(std::move(name)), left_(value), size_(int64_t(value.size())) {}

  size_t read(std::span<char> out) override {
    size_t count = left_.copy(out.data(), out.size());
    left_.remove_prefix(count);
    return count;
  }
  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override { return size_ - int64_t(left_.size()); }
  int64_t total_bytes() const override { return size_; }

 private:
  std::string name_;
  std::string_view left_;
  int64_t size_;
};

class LmdbTexts final : public Source {
 public:
  LmdbTexts(const fs::path& path, const SourceOptions& options)
      : file_(path), options_(options), name_(path.string()), cursor_(file_.cursor()) {
    more_ = cursor_.first(entry_);
    is_json_ = more_ && entry_.value.starts_with('{');
  }

  bool next(Document& document) override {
    while (more_) {
      if (is_used_) advance();
      is_used_ = true;
      if (more_ && (is_json_ ? next_json(document) : next_text(document))) return true;
    }
    return false;
  }

  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override {
    return more_ ? int64_t(double(file_.bytes()) * double(read_) / double(file_.entries())) : file_.bytes();
  }
  int64_t total_bytes() const override { return file_.bytes(); }

 private:
  void advance() {
    more_ = cursor_.next(entry_);
    ++read_;
  }

  std::string place() const { return fmt::format("{} key {}", name_, show_key(entry_.key)); }

  bool next_text(Document& document) {
    if (entry_.value.find('\0') != entry_.value.npos)
      user_error(
          "[lmdb] {}: expected text or a JSON object, got a value with zero bytes; if the values are tokens, "
          "their format is lmdb-tokens",
          place());
    if (options_.notes && !is_utf8(entry_.value)) note(options_, "not UTF-8", "warning: " + encoding_warning(place()));
    document = {.text = entry_.value, .tokens = {}};
    return !entry_.value.empty();
  }

  bool next_json(Document& document) {
    object_ = read_json(std::make_unique<ValueBytes>(place(), entry_.value), options_);
    return object_->next(document);
  }

  LmdbFile file_;
  SourceOptions options_;
  std::string name_;
  LmdbCursor cursor_;
  LmdbEntry entry_;
  std::unique_ptr<Source> object_;  // of the value, if it is JSON
  bool more_ = false;
  bool is_used_ = false;  // the entry was looked at
  bool is_json_ = false;
  int64_t read_ = 0;
};

std::unique_ptr<Source> open_lmdb_texts(const fs::path& path, const SourceOptions& options) {
  return std::make_unique<LmdbTexts>(path, options);
}

}  // namespace

const TokenReader lmdb_tokens = {.open = open_lmdb_tokens};
const DocumentReader lmdb_documents = {.open = open_lmdb_texts};
const DocumentReader lmdb_token_documents = {.open = open_lmdb_token_source};

}  // namespace tokamak
