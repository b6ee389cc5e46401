// HDF5: a dataset of integers is tokens, a dataset of strings is documents.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "data/fingerprint.h"
#include "data/sources/file_tokens.h"
#include "data/sources/optional/hdf5_file.h"
#include "data/sources/source_format.h"
#include "data/sources/token_source.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// The type of a dataset of integers; nothing for other kinds.
std::optional<TokenType> integer_type(const Hdf5Dataset& dataset) {
  Hdf5Lock lock;
  Hdf5Handle type = dataset.type();
  int bytes = int(H5Tget_size(type.id()));
  if (H5Tget_class(type.id()) != H5T_INTEGER || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return {};
  return TokenType{bytes, H5Tget_sign(type.id()) == H5T_SGN_2};
}

bool is_text(const Hdf5Dataset& dataset) {
  Hdf5Lock lock;
  return H5Tget_class(dataset.type().id()) == H5T_STRING;
}

[[noreturn]] void refuse_type(const Hdf5Dataset& dataset, const char* expected) {
  Hdf5Lock lock;
  bool floats = H5Tget_class(dataset.type().id()) == H5T_FLOAT;
  user_error("[hdf5] {}: expected {}, got {}; save it as uint16 or uint32, or name another dataset as the field",
             dataset.name(), expected, floats ? "floating-point numbers" : "elements of another type");
}

/// Where the tokens lie, if they lie in the file as they are, one after the other.
std::optional<TokenRun> find_run(const Hdf5Dataset& dataset) {
  Hdf5Lock lock;
  Hdf5Handle creation(H5Dget_create_plist(dataset.id()), H5Pclose), type = dataset.type();
  bool plain = H5Pget_layout(creation.id()) == H5D_CONTIGUOUS && H5Pget_external_count(creation.id()) == 0;
  bool little_endian = H5Tget_size(type.id()) == 1 || H5Tget_order(type.id()) == H5T_ORDER_LE;
  haddr_t offset = H5Dget_offset(dataset.id());  // undefined where nothing was ever written
  if (!plain || !little_endian || offset == HADDR_UNDEF) return {};
  return TokenRun{int64_t(offset), dataset.size()};
}

/// Tokens in chunks, compressed or not, read through the library.
class Hdf5Tokens final : public TokenArray {
 public:
  Hdf5Tokens(Hdf5Dataset dataset, TokenType type) : dataset_(std::move(dataset)), type_(type) {
    Hdf5Lock lock;
    native_ = Hdf5Handle(H5Tget_native_type(dataset_.type().id(), H5T_DIR_ASCEND), H5Tclose);
  }

  int64_t size() const override { return dataset_.size(); }

  void read(int64_t begin, std::span<int32_t> out) const override {
    TOKAMAK_CHECK(begin >= 0 && begin + int64_t(out.size()) <= size(), "tokens {} to {} of {} in {}", begin,
                  begin + int64_t(out.size()), size(), dataset_.name());
    constexpr size_t kBytes = size_t(16) << 10;
    std::array<std::byte, kBytes> buffer;
    while (!out.empty()) {
      size_t count = std::min(out.size(), kBytes / size_t(type_.bytes));
      dataset_.read(begin, int64_t(count), native_.id(), buffer.data());
      widen_checked(type_, buffer.data(), out.first(count), dataset_.path().string(), begin);
      out = out.subspan(count);
      begin += int64_t(count);
    }
  }

  Place place(int64_t at) const override { return {dataset_.path().string(), at, size() - at}; }
  std::vector<FileFingerprint> fingerprints() const override { return {fingerprint_file(dataset_.path())}; }

 private:
  Hdf5Dataset dataset_;
  TokenType type_;
  Hdf5Handle native_;  // the same type in this machine's byte order
};

std::unique_ptr<TokenArray> open_integers(Hdf5Dataset dataset, TokenType type) {
  std::optional<TokenRun> run = find_run(dataset);
  if (!run) return std::make_unique<Hdf5Tokens>(std::move(dataset), type);
  FileReader file(dataset.path());
  if (run->offset > file.size() || run->tokens > (file.size() - run->offset) / type.bytes)
    user_error("[hdf5] {}: expected {} tokens from byte {} on, got a file of {} bytes; it is cut short: copy it again",
               dataset.name(), run->tokens, run->offset, file.size());
  return std::make_unique<FileTokens>(std::move(file), type, std::vector{*run});
}

std::unique_ptr<TokenArray> open_tokens_of(const fs::path& path, const SourceOptions& options) {
  Hdf5Dataset dataset(path, options.text_field);
  std::optional<TokenType> type = integer_type(dataset);
  if (!type && is_text(dataset))
    user_error("[hdf5] {}: expected integers of 8 to 64 bits, got text; run `tokamak prepare` on it", dataset.name());
  if (!type) refuse_type(dataset, "integers of 8 to 64 bits");
  return open_integers(std::move(dataset), *type);
}

/// The strings of a dataset, a few at a time.
class Hdf5Texts final : public Source {
 public:
  explicit Hdf5Texts(Hdf5Dataset dataset) : dataset_(std::move(dataset)), name_(dataset_.path().string()) {
    Hdf5Lock lock;
    Hdf5Handle stored = dataset_.type();
    type_ = Hdf5Handle(H5Tcopy(stored.id()), H5Tclose);
    variable_ = H5Tis_variable_str(stored.id()) > 0;
    bytes_ = variable_ ? sizeof(char*) : H5Tget_size(stored.id());
    padding_ = H5Tget_strpad(stored.id());
    batch_ = variable_ ? 64 : std::clamp<int64_t>(int64_t(kBatchBytes / bytes_), 1, 4096);
    file_bytes_ = int64_t(fs::file_size(dataset_.path()));
  }
  ~Hdf5Texts() override { release(); }

  bool next(Document& document) override {
    while (at_ < dataset_.size()) {
      if (at_ == first_ + count_) fill();
      document = {.text = element(size_t(at_++ - first_)), .tokens = {}};
      if (!document.text.empty()) return true;
    }
    return false;
  }

  const std::string& name() const override { return name_; }
  int64_t bytes_read() const override {
    return dataset_.size() == 0 ? file_bytes_ : int64_t(double(file_bytes_) * double(at_) / double(dataset_.size()));
  }
  int64_t total_bytes() const override { return file_bytes_; }

 private:
  static constexpr size_t kBatchBytes = size_t(1) << 20;

  void fill() {
    release();
    first_ = at_;
    int64_t count = std::min(batch_, dataset_.size() - first_);
    buffer_.assign(size_t(count) * bytes_, '\0');
    dataset_.read(first_, count, type_.id(), buffer_.data());
    count_ = count;
  }

  /// Gives back what the library allocated for strings of variable length.
  void release() {
    if (variable_ && count_ > 0) {
      Hdf5Lock lock;
      H5Dvlen_reclaim(type_.id(), Hdf5Dataset::memory_space(count_).id(), H5P_DEFAULT, buffer_.data());
    }
    count_ = 0;
  }

  std::string_view element(size_t i) const {
    const char* at = buffer_.data() + i * bytes_;
    if (variable_) {
      const char* text;
      std::memcpy(&text, at, sizeof text);
      return text ? std::string_view(text) : std::string_view();
    }
    std::string_view text(at, bytes_);
    if (padding_ == H5T_STR_NULLTERM) return text.substr(0, text.find('\0'));
    return text.substr(0, text.find_last_not_of(padding_ == H5T_STR_SPACEPAD ? ' ' : '\0') + 1);
  }

  Hdf5Dataset dataset_;
  std::string name_;
  Hdf5Handle type_;
  bool variable_ = false;
  size_t bytes_ = 1;  // of an element in memory
  H5T_str_t padding_ = H5T_STR_NULLTERM;
  int64_t batch_ = 1;
  int64_t file_bytes_ = 0;
  std::vector<char> buffer_;
  int64_t first_ = 0, count_ = 0;  // elements in the buffer
  int64_t at_ = 0;
};

std::unique_ptr<Source> open_documents_of(const fs::path& path, const SourceOptions& options) {
  Hdf5Dataset dataset(path, options.text_field);
  if (is_text(dataset)) return std::make_unique<Hdf5Texts>(std::move(dataset));
  std::optional<TokenType> type = integer_type(dataset);
  if (!type) refuse_type(dataset, "strings, or integers of 8 to 64 bits");
  return token_source(path, open_integers(std::move(dataset), *type), options);
}

}  // namespace

const TokenReader hdf5_tokens = {.open = open_tokens_of};
const DocumentReader hdf5_documents = {.open = open_documents_of};

}  // namespace tokamak
