// Parquet, by a module that is opened when it is needed (modules/parquet_module.h): one column's texts are documents.
#include <dlfcn.h>

#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "data/source_notes.h"
#include "data/sources/content.h"
#include "data/sources/modules/parquet_module.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostParts = 128;  // in one text

/// The module's function, from beside the program. It stays open, as Arrow does not like to be closed.
OpenParquet find_module(const fs::path& file) {
  std::error_code error;
  fs::path module = fs::read_symlink("/proc/self/exe", error).parent_path() / kParquetModule;
  constexpr const char* kRemedy =
      "with Arrow's library from PyPI (tools/setup.sh parquet, or pip install pyarrow) build again, or write the "
      "column of text as JSON lines";
  if (!fs::exists(module, error))
    user_error("[parquet] {}: expected a program with its module for Parquet, {}, which is not there; {}",
               file.string(), module.string(), kRemedy);
  void* handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* function = handle ? ::dlsym(handle, kOpenParquet) : nullptr;
  if (!function) {
    const char* reason = ::dlerror();
    user_error("[parquet] {}: expected the program's module for Parquet to open, got {}; {}", file.string(),
               reason ? reason : "nothing", kRemedy);
  }
  return reinterpret_cast<OpenParquet>(function);
}

[[noreturn]] void damaged(const fs::path& file, std::string_view reason) {
  while (reason.ends_with('.')) reason.remove_suffix(1);
  user_error("[parquet] {}: expected a Parquet file, got damage: {}; copy or download it again", file.string(), reason);
}

class ParquetSource : public Source {
 public:
  ParquetSource(const fs::path& path, const SourceOptions& options)
      : options_(options), path_(path.string()), most_bytes_(size_t(kMostParts * options.part_bytes)) {
    if (path == "-") user_error("[parquet] expected a file, as it is read from any place, got standard input");
    if (options.conversations)
      user_error("[parquet] {}: expected JSON objects for --chat, got Parquet; write its rows as JSON lines", path_);
    file_bytes_ = FileReader(path).size();  // says why, where it cannot be read
    OpenParquet open = find_module(path);
    try {
      texts_.reset(open(path_.c_str(), options.text_field.c_str()));
    } catch (const std::invalid_argument& error) {
      user_error("[parquet] {}: expected a column \"{}\" of text, got {}; name one with --field", path_,
                 options.text_field, error.what());
    } catch (const std::runtime_error& error) {
      damaged(path, error.what());
    }
  }

  bool next(Document& document) override {
    for (std::string_view text; next_text(text);) {
      if (text.size() > most_bytes_)
        user_error("[parquet] {}: expected at most {} bytes in a row, got {} in one of the rows up to {}; leave it out",
                   path_, most_bytes_, text.size(), texts_->rows_read());
      if (text.empty()) continue;
      if (options_.notes && !is_utf8(text)) note(options_, "not UTF-8", "warning: " + encoding_warning(path_));
      document = {.text = text};
      return true;
    }
    return false;
  }

  const std::string& name() const override { return path_; }
  int64_t bytes_read() const override {
    int64_t rows = texts_->rows();
    return rows > 0 ? int64_t(double(file_bytes_) * double(texts_->rows_read()) / double(rows)) : file_bytes_;
  }
  int64_t total_bytes() const override { return file_bytes_; }

 private:
  bool next_text(std::string_view& text) {
    try {
      return texts_->next(text);
    } catch (const std::runtime_error& error) {
      damaged(path_, fmt::format("behind row {}: {}", texts_->rows_read(), error.what()));
    }
  }

  SourceOptions options_;
  std::string path_;
  size_t most_bytes_;
  int64_t file_bytes_ = 0;
  std::unique_ptr<ParquetTexts> texts_;
};

std::unique_ptr<Source> open(const fs::path& path, const SourceOptions& options) {
  return std::make_unique<ParquetSource>(path, options);
}

}  // namespace

const DocumentReader parquet_documents = {.open = open, .looks = true};

}  // namespace tokamak
