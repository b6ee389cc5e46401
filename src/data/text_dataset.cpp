#include "data/text_dataset.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "data/fingerprint.h"
#include "data/sources/content.h"
#include "data/word_border.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMeasuredBytes = 1 << 20;  // of text, for bytes per token
constexpr int64_t kMostScanned = 1 << 12;    // bytes from a window's place without a border: any character will do
constexpr int64_t kMostHeld = 1 << 16;       // the same at the end of a piece, where it should be a border of words
constexpr size_t kStepBytes = 64;            // encoded at a time near the end of a window

struct TextFile {
  fs::path path;
  int64_t begin = 0;   // in the stream of all files
  int64_t bytes = 0;   // of text
  int64_t before = 0;  // bytes of the file before its text: a byte order mark
};

/// Pieces of files, read as they are asked for.
class PieceReader {
 public:
  /// Bytes [begin, begin + count) of a file's text, as far as it goes; valid until the next call.
  std::string_view read(const TextFile& file, int64_t begin, int64_t count) {
    if (!reader_ || reader_->path() != file.path) reader_.emplace(file.path);
    size_t size = size_t(std::min(count, file.bytes - begin));
    if (buffer_.size() < size) buffer_.resize(size);
    reader_->read(file.before + begin, std::as_writable_bytes(std::span(buffer_.data(), size)));
    return {buffer_.data(), size};
  }

 private:
  std::optional<FileReader> reader_;
  std::string buffer_;
};

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The last place of `text` (> 0) that is not inside a character of UTF-8; its end in other encodings.
size_t last_character(std::string_view text) {
  for (size_t at = text.size() - 1; at > 0 && text.size() - at < 5; --at)
    if (!is_inside_character(text[at])) return at;
  return text.size() - 1;
}

/// Encodes what windows need.
class WindowEncoder : public WindowReader {
 public:
  WindowEncoder(std::shared_ptr<const std::vector<TextFile>> files, std::shared_ptr<const Tokenizer> tokenizer,
                int64_t context, int64_t window_bytes)
      : shared_files_(std::move(files)), files_(*shared_files_), tokenizer_(std::move(tokenizer)),
        encoder_(*tokenizer_), context_(context), window_bytes_(window_bytes) {}

  void read(int64_t window, std::span<int32_t> out) override {
    encode(window);
    std::copy_n(ids_.begin(), out.size(), out.begin());
  }

  std::vector<FileRange> place(int64_t window) override {
    encode(window);
    size_t needed = size_t(context_ + 1);
    std::vector<FileRange> ranges;
    for (size_t i = 0; i < parts_.size(); ++i) {
      size_t end = std::min(i + 1 < parts_.size() ? parts_[i + 1].first_id : ids_.size(), needed);
      if (end <= parts_[i].first_id) continue;
      int64_t length = std::min(bytes_of(parts_[i].first_id, end), parts_[i].file->bytes - parts_[i].begin);
      const TextFile& file = *parts_[i].file;
      if (length > 0) ranges.push_back({file.path.string(), file.before + parts_[i].begin, length});
    }
    return ranges;
  }

 private:
  /// Ids from here to the next part's are of this file, its end-of-text marker included.
  struct Part {
    const TextFile* file;
    int64_t begin;
    size_t first_id;
  };

  int64_t bytes_of(size_t first_id, size_t end) const {
    const Vocabulary& vocabulary = tokenizer_->vocabulary();
    int64_t bytes = 0;
    for (size_t i = first_id; i < end; ++i)
      if (ids_[i] != tokenizer_->end_of_text()) bytes += int64_t(vocabulary.tokens[size_t(ids_[i])].size());
    return bytes;
  }

  /// Fills ids_ with at least T + 1 tokens of the window.
  void encode(int64_t window) {
    int64_t begin = window * window_bytes_;
    auto after = std::upper_bound(files_.begin(), files_.end(), begin,
                                  [](int64_t at, const TextFile& file) { return at < file.begin; });
    size_t file = size_t(after - files_.begin()) - 1;
    ids_.clear();
    parts_.clear();
    begin = first_border(files_[file], begin - files_[file].begin);
    for (;;) {
      parts_.push_back({&files_[file], begin, ids_.size()});
      encode_file(files_[file], begin);
      if (is_full()) return;
      ids_.push_back(tokenizer_->end_of_text());
      file = (file + 1) % files_.size();
      begin = 0;
    }
  }

  bool is_full() const { return int64_t(ids_.size()) > context_; }

  /// The first word border of a file at or after `begin`; its end if there is none.
  int64_t first_border(const TextFile& file, int64_t begin) {
    if (begin == 0) return 0;
    for (int64_t count = 512;; count *= 8) {
      std::string_view text = pieces_.read(file, begin - 1, count + 1);
      if (size_t at = first_word_border(text, 1); at != text.npos) return begin - 1 + int64_t(at);
      if (begin - 1 + int64_t(text.size()) == file.bytes) return file.bytes;
      if (count < kMostScanned) continue;
      size_t at = 1;
      while (at < 4 && is_inside_character(text[at])) ++at;
      return begin - 1 + int64_t(at);
    }
  }

  /// Appends tokens from the word border `begin` on until there are enough, or to the end of the file.
  void encode_file(const TextFile& file, int64_t begin) {
    int64_t least = 0;
    while (!is_full() && begin < file.bytes) {
      int64_t missing = context_ + 1 - int64_t(ids_.size());
      int64_t count = std::max(least, missing * window_bytes_ / context_ * 9 / 8 + 256);
      std::string_view text = pieces_.read(file, begin, count);
      size_t limit = text.size();
      if (begin + int64_t(text.size()) < file.bytes) {
        limit = tokenizer_->needs_cuts() ? last_cut(text) : last_word_border(text);
        if (limit == text.npos && count < kMostHeld) {
          least = count * 4;
          continue;
        }
        if (limit == text.npos) limit = last_character(text);
        // With the character that shows where the last word ends; a cut shows it by itself.
        text = text.substr(0, tokenizer_->needs_cuts() ? limit : limit + 1);
      }
      begin += int64_t(encode_text(text, limit));
      least = 0;
    }
  }

  /// The same for the words that begin before `limit`; gives the place after the last one encoded. A word never reaches
  /// over `limit`, unless no border was found and one was made there.
  size_t encode_text(std::string_view text, size_t limit) {
    size_t at = 0;
    while (at < limit && !is_full()) {
      // Most of it at once, then little by little, so that not much is encoded in vain.
      int64_t missing = context_ + 1 - int64_t(ids_.size());
      size_t step = std::max(kStepBytes, size_t(missing * window_bytes_ / context_ / 2));
      at = encoder_.append_part(text, at, std::min(limit, at + step), ids_);
    }
    return std::min(at, limit);
  }

  std::shared_ptr<const std::vector<TextFile>> shared_files_;
  const std::vector<TextFile>& files_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Encoder encoder_;
  int64_t context_;
  int64_t window_bytes_;
  PieceReader pieces_;
  std::vector<int32_t> ids_;
  std::vector<Part> parts_;
};

int64_t bytes_before_text(const fs::path& path) {
  FileReader reader(path);
  std::string begin(size_t(std::min<int64_t>(reader.size(), kByteOrderMark.size())), '\0');
  reader.read(0, std::as_writable_bytes(std::span(begin)));
  return begin == kByteOrderMark ? int64_t(begin.size()) : 0;
}

std::vector<TextFile> list_files(const std::vector<fs::path>& paths) {
  std::vector<TextFile> files;
  int64_t begin = 0;
  for (const fs::path& path : paths) {
    std::error_code error;
    auto bytes = int64_t(fs::file_size(path, error));
    if (error) file_error("read", path, error.value());
    int64_t before = bytes_before_text(path);
    bytes -= before;
    if (bytes == 0) continue;
    files.push_back({path, begin, bytes, before});
    begin += bytes;
  }
  return files;
}

/// T times the bytes per token of the beginning of the data.
int64_t measure_window_bytes(const std::vector<TextFile>& files, const Tokenizer& tokenizer, int64_t context) {
  PieceReader pieces;
  Encoder encoder(tokenizer, size_t(kMeasuredBytes));
  std::vector<int32_t> ids;
  int64_t bytes = 0;
  for (size_t i = 0; i < files.size() && bytes < kMeasuredBytes; ++i) {
    std::string_view text = pieces.read(files[i], 0, kMeasuredBytes - bytes);
    encoder.append(text, ids);
    bytes += int64_t(text.size());
  }
  return std::max<int64_t>(std::llround(double(context) * double(bytes) / double(ids.size())), 1);
}

class TextDataset : public Dataset {
 public:
  TextDataset(TextDatasetOptions options, std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)), tokenizer_(std::move(tokenizer)),
        files_(std::make_shared<std::vector<TextFile>>(list_files(options_.files))) {
    tokenizer_->end_of_text();
    if (const std::string& token = tokenizer_->needs_whole_text(); !token.empty())
      user_error(
          "[data] {}: expected a tokenizer whose added tokens have no blanks inside and no lstrip, rstrip or "
          "single_word, as windows of text are read alone, got the token '{}'; run `tokamak prepare` on the text, and "
          "train on what it makes",
          path(), token);
    if (files_->empty()) user_error("[data] {}: expected text, got only empty files; name other files", path());
    total_ = files_->back().begin + files_->back().bytes;
    if (options_.window_bytes == 0)
      options_.window_bytes = measure_window_bytes(*files_, *tokenizer_, options_.context);
    if (total_ < options_.window_bytes)
      user_error(
          "[data] {}: expected text for model.context = {} tokens, about {} bytes, got {} bytes; lower model.context, "
          "or name more text",
          path(), options_.context, options_.window_bytes, total_);
  }

  const std::string& path() const override { return options_.path; }
  const char* kind() const override { return "text"; }
  int64_t windows() const override { return total_ / options_.window_bytes; }
  int64_t window_bytes() const override { return options_.window_bytes; }
  std::unique_ptr<WindowReader> reader() const override {
    return std::make_unique<WindowEncoder>(files_, tokenizer_, options_.context, options_.window_bytes);
  }
  DatasetFacts facts() const override {
    return {.text_bytes = total_, .vocab_size = tokenizer_->vocab_size(), .end_of_text = tokenizer_->end_of_text()};
  }
  std::vector<FileFingerprint> fingerprints() const override {
    std::vector<FileFingerprint> prints;
    for (const TextFile& file : *files_) prints.push_back(fingerprint_file(file.path));
    return prints;
  }

 private:
  TextDatasetOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const std::vector<TextFile>> files_;
  int64_t total_ = 0;  // bytes
};

}  // namespace

std::unique_ptr<Dataset> open_text_dataset(TextDatasetOptions options, std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_unique<TextDataset>(std::move(options), std::move(tokenizer));
}

}  // namespace tokamak
