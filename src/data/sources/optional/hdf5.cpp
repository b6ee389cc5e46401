// HDF5: a dataset of integers is tokens, a dataset of strings is documents.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "data/fingerprint.h"
#include "data/source_notes.h"
#include "data/sources/content.h"
#include "data/sources/file_tokens.h"
#include "data/sources/optional/hdf5_reader.h"
#include "data/sources/source_format.h"
#include "data/sources/token_source.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

using Kind = Hdf5Facts::Kind;

[[noreturn]] void refuse_type(const Hdf5Reader& dataset, const char* expected) {
  bool floats = dataset.facts().kind == Kind::kFloats;
  user_error("[hdf5] {}: expected {}, got {}; save it as uint16 or uint32, or name another dataset as the field",
             dataset.name(), expected, floats ? "floating-point numbers" : "elements of another type");
}

/// Tokens in chunks, compressed or not, read through the library.
class Hdf5Tokens final : public TokenArray {
 public:
  explicit Hdf5Tokens(std::unique_ptr<Hdf5Reader> dataset) : dataset_(std::move(dataset)) {}

  int64_t size() const override { return dataset_->facts().elements; }

  void read(int64_t begin, std::span<int32_t> out) const override {
    TOKAMAK_CHECK(begin >= 0 && begin + int64_t(out.size()) <= size(), "tokens {} to {} of {} in {}", begin,
                  begin + int64_t(out.size()), size(), dataset_->name());
    constexpr size_t kAtOnce = size_t(1) << 20;
    TokenType type = dataset_->facts().type;
    while (!out.empty()) {
      size_t count = std::min(out.size(), kAtOnce);
      std::string bytes = dataset_->integers(begin, int64_t(count));
      widen_checked(type, reinterpret_cast<const std::byte*>(bytes.data()), out.first(count), dataset_->path().string(),
                    begin);
      out = out.subspan(count);
      begin += int64_t(count);
    }
  }

  Place place(int64_t at) const override { return {dataset_->path().string(), at, size() - at}; }
  std::vector<FileFingerprint> fingerprints() const override { return {fingerprint_file(dataset_->path())}; }

 private:
  std::unique_ptr<Hdf5Reader> dataset_;
};

std::unique_ptr<TokenArray> open_integers(std::unique_ptr<Hdf5Reader> dataset) {
  const Hdf5Facts& facts = dataset->facts();
  if (facts.offset < 0) return std::make_unique<Hdf5Tokens>(std::move(dataset));
  FileReader file(dataset->path());
  if (facts.offset > file.size() || facts.elements > (file.size() - facts.offset) / facts.type.bytes)
    user_error("[hdf5] {}: expected {} tokens from byte {} on, got a file of {} bytes; it is cut short: copy it again",
               dataset->name(), facts.elements, facts.offset, file.size());
  return std::make_unique<FileTokens>(std::move(file), facts.type, std::vector{TokenRun{facts.offset, facts.elements}});
}

std::unique_ptr<TokenArray> open_tokens_of(const fs::path& path, const SourceOptions& options) {
  auto dataset = std::make_unique<Hdf5Reader>(path, options.text_field);
  if (dataset->facts().kind == Kind::kTexts)
    user_error("[hdf5] {}: expected integers of 8 to 64 bits, got text; run `tokamak prepare` on it", dataset->name());
  if (dataset->facts().kind != Kind::kIntegers) refuse_type(*dataset, "integers of 8 to 64 bits");
  return open_integers(std::move(dataset));
}

/// The strings of a dataset, a few at a time.
class Hdf5Texts final : public Source {
 public:
  Hdf5Texts(std::unique_ptr<Hdf5Reader> dataset, const SourceOptions& options)
      : dataset_(std::move(dataset)), options_(options), name_(dataset_->path().string()),
        file_bytes_(int64_t(fs::file_size(dataset_->path()))) {}

  bool next(Document& document) override {
    while (left_.empty() ? fill() : true) {
      document = {.text = take_text(), .tokens = {}};
      if (options_.notes && !is_utf8(document.text))
        note(options_, "not UTF-8", "warning: " + encoding_warning(fmt::format("{} text {}", name_, given_ + 1)));
      ++given_;
      if (!document.text.empty()) return true;
    }
    return false;
  }

  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override {
    return size() == 0 ? file_bytes_ : int64_t(double(file_bytes_) * double(given_) / double(size()));
  }
  int64_t total_bytes() const override { return file_bytes_; }

 private:
  int64_t size() const { return dataset_->facts().elements; }

  bool fill() {
    int64_t count = std::min(dataset_->facts().at_once, size() - given_);
    if (count == 0) return false;
    buffer_ = dataset_->texts(given_, count);
    left_ = buffer_;
    return true;
  }

  std::string_view take_text() {
    uint64_t bytes = 0;
    std::memcpy(&bytes, left_.data(), sizeof bytes);
    std::string_view text = left_.substr(sizeof bytes, bytes);
    left_.remove_prefix(sizeof bytes + bytes);
    return text;
  }

  std::unique_ptr<Hdf5Reader> dataset_;
  SourceOptions options_;
  std::string name_;
  int64_t file_bytes_ = 0;
  std::string buffer_;
  std::string_view left_;  // of the buffer
  int64_t given_ = 0;      // elements
};

std::unique_ptr<Source> open_documents_of(const fs::path& path, const SourceOptions& options) {
  auto dataset = std::make_unique<Hdf5Reader>(path, options.text_field);
  if (dataset->facts().kind == Kind::kTexts) return std::make_unique<Hdf5Texts>(std::move(dataset), options);
  if (dataset->facts().kind != Kind::kIntegers) refuse_type(*dataset, "strings, or integers of 8 to 64 bits");
  return token_source(path, open_integers(std::move(dataset)), options);
}

}  // namespace

const TokenReader hdf5_tokens = {.open = open_tokens_of};
const DocumentReader hdf5_documents = {.open = open_documents_of};

}  // namespace tokamak
