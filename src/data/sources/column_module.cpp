#include "data/sources/column_module.h"

#include <dlfcn.h>

#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "data/sources/document_checks.h"
#include "data/sources/modules/parquet_module.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

/// Where it is installed, or else beside the program, as it is built.
fs::path find_module() {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  fs::path installed = folder.parent_path() / "lib/tokamak" / kParquetModule;
  return fs::exists(installed, error) ? installed : folder / kParquetModule;
}

/// The module's function. It stays open, as Arrow does not like to be closed.
OpenColumn find_function(const fs::path& file, const ColumnFormat& format) {
  std::error_code error;
  fs::path module = find_module();
  if (!fs::exists(module, error))
    user_error(
        "[{}] {}: expected a program with its module for {}, {}, which is not there; with Arrow's library from PyPI "
        "(tools/setup.sh parquet, or pip install pyarrow) build again, or write the column of text as JSON lines",
        format.where, file.string(), format.title, module.string());
  void* handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* function = handle ? ::dlsym(handle, format.function) : nullptr;
  if (!function) {
    const char* reason = ::dlerror();
    user_error(
        "[{}] {}: expected the program's module for {} to open, got {}; install Arrow's library (pip install "
        "pyarrow==26.0.1) and name the folder that pyarrow.get_library_dirs() gives in LD_LIBRARY_PATH",
        format.where, file.string(), format.title, reason ? reason : "nothing");
  }
  return reinterpret_cast<OpenColumn>(function);
}

class ColumnSource : public Source {
 public:
  ColumnSource(const fs::path& path, const SourceOptions& options, const ColumnFormat& format)
      : options_(options), format_(format), path_(path.string()), most_bytes_(most_document_bytes(options)) {
    if (path == "-") user_error("[{}] expected a file, as it is read from any place, got standard input", format.where);
    if (options.conversations)
      user_error("[{}] {}: expected JSON objects for --chat, got {}; write its rows as JSON lines", format.where, path_,
                 format.title);
    file_bytes_ = FileReader(path).size();  // says why, where it cannot be read
    OpenColumn open = find_function(path, format);
    try {
      rows_.reset(open(path_.c_str(), options.text_field.c_str()));
    } catch (const std::invalid_argument& error) {
      user_error("[{}] {}: expected a column \"{}\" of text, or of lists of integers, got {}; name one with --field",
                 format.where, path_, options.text_field, error.what());
    } catch (const std::runtime_error& error) {
      damaged(error.what());
    }
  }

  bool next(Document& document) override {
    for (ColumnValue value; next_value(value);) {
      if (size_t size = std::max(value.text.size(), value.ids.size_bytes()); size > most_bytes_)
        user_error("[{}] {}: expected at most {} bytes in a row, got {} in one of the rows up to {}; leave it out",
                   format_.where, path_, most_bytes_, size, rows_->rows_read());
      if (value.text.empty() && value.ids.empty()) continue;
      note_encoding(options_, value.text, path_);
      document = {.text = value.text, .tokens = value.ids};
      return true;
    }
    return false;
  }

  const std::string& name() const override { return path_; }
  int64_t bytes_read() const override { return int64_t(double(file_bytes_) * rows_->share_read()); }
  int64_t total_bytes() const override { return file_bytes_; }

 private:
  bool next_value(ColumnValue& value) {
    try {
      return rows_->next(value);
    } catch (const std::out_of_range& error) {
      user_error(
          "[{}] {}: expected token ids in the rows of \"{}\", got {} in one of the rows up to {}; name another "
          "column with --field",
          format_.where, path_, options_.text_field, error.what(), rows_->rows_read());
    } catch (const std::runtime_error& error) {
      damaged(fmt::format("behind row {}: {}", rows_->rows_read(), error.what()));
    }
  }

  [[noreturn]] void damaged(std::string_view reason) const {
    while (reason.ends_with('.')) reason.remove_suffix(1);
    user_error("[{}] {}: expected {}, got damage: {}; copy or download it again", format_.where, path_, format_.title,
               reason);
  }

  SourceOptions options_;
  ColumnFormat format_;
  std::string path_;
  size_t most_bytes_;
  int64_t file_bytes_ = 0;
  std::unique_ptr<ColumnRows> rows_;
};

}  // namespace

std::unique_ptr<Source> open_column(const fs::path& path, const SourceOptions& options, const ColumnFormat& format) {
  return std::make_unique<ColumnSource>(path, options, format);
}

}  // namespace tokamak
