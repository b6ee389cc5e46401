// CSV and TSV: the first row names the columns, and of the others one column's fields are documents.
#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "data/sources/document_checks.h"
#include "data/sources/optional/csv_rows.h"
#include "data/sources/source_format.h"

namespace tokamak {

namespace {

class CsvSource : public Source {
 public:
  CsvSource(std::unique_ptr<ByteStream> stream, const SourceOptions& options)
      : options_(options), rows_(std::move(stream), most_document_bytes(options)) {
    if (options.conversations)
      user_error("[csv] {}: expected JSON objects for --chat, got a table; write its rows as JSON lines", name());
    if (!rows_.next(row_))
      user_error("[csv] {}: expected a first row with the columns' names, got an empty file", name());
    auto found = std::find(row_.begin(), row_.end(), options.text_field);
    if (found == row_.end())
      user_error(
          "[csv] {}: expected a column \"{}\", got {}; name the one that holds the text with --field, or read all of "
          "it "
          "as text with --format=text",
          name(), options.text_field, shown_columns());
    column_ = size_t(found - row_.begin());
    columns_ = row_.size();
  }

  bool next(Document& document) override {
    while (rows_.next(row_)) {
      if (!is_whole() || row_[column_].empty()) continue;
      note_encoding(options_, row_[column_], name());
      document = {.text = row_[column_]};
      return true;
    }
    return false;
  }

  const std::string& name() const override { return rows_.stream().name(); }
  int64_t bytes_read() const override { return rows_.stream().bytes_read(); }
  int64_t total_bytes() const override { return rows_.stream().total_bytes(); }

 private:
  std::string shown_columns() const {
    constexpr size_t kShown = 20;
    std::vector<std::string> first(row_.begin(), row_.begin() + int64_t(std::min(row_.size(), kShown)));
    return fmt::format("\"{}\"{}", fmt::join(first, "\", \""), row_.size() > kShown ? ", ..." : "");
  }

  // False of a row with more or fewer fields than columns, if such are only counted.
  bool is_whole() {
    if (row_.size() == columns_) return true;
    if (!options_.bad_lines)
      user_error(
          "[csv] {} row {}: expected {} fields, as the first row has, got {}; repair it, or pass over such rows, and "
          "count them, with --skip-bad",
          name(), rows_.number(), columns_, row_.size());
    ++*options_.bad_lines;
    return false;
  }

  SourceOptions options_;
  CsvRows rows_;
  CsvRows::Row row_;
  size_t column_ = 0, columns_ = 0;
};

std::unique_ptr<Source> open(const std::filesystem::path& path, const SourceOptions& options) {
  return std::make_unique<CsvSource>(open_bytes(path, options), options);
}

}  // namespace

const DocumentReader csv_documents = {.open = open, .streams = true, .looks = true};

}  // namespace tokamak
