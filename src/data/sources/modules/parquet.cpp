// The module for Parquet, over Arrow's C++ library: pages of one column, in order. A page, its dictionary and a buffer
// of the file are in memory, whatever a row group has.
#include "data/sources/modules/parquet_module.h"

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

namespace tokamak {

namespace {

constexpr int64_t kBufferBytes = 1 << 20;
constexpr int64_t kAtOnce = 256;  // values
constexpr int kShown = 20;        // columns in a message

std::string path_of(const parquet::ColumnDescriptor& column) { return column.path()->ToDotString(); }

/// Strings, which Arrow's string, large_string and dictionaries of them are in a file. Older writers do not mark them.
bool is_text(const parquet::ColumnDescriptor& column) {
  using Type = parquet::LogicalType::Type;
  if (column.physical_type() != parquet::Type::BYTE_ARRAY) return false;
  Type::type type = column.logical_type()->type();
  return type == Type::STRING || type == Type::JSON || type == Type::ENUM || type == Type::NONE;
}

bool is_nested(const parquet::ColumnDescriptor& column) {
  return column.max_repetition_level() > 0 || column.path()->ToDotVector().size() > 1;
}

std::string kind_of(const parquet::ColumnDescriptor& column) {
  if (is_nested(column)) return "nested";
  if (is_text(column)) return "text";
  return column.logical_type()->is_none() ? parquet::TypeToString(column.physical_type())
                                          : column.logical_type()->ToString();
}

std::string shown_columns(const parquet::SchemaDescriptor& schema) {
  std::string list;
  for (int i = 0; i < std::min(schema.num_columns(), kShown); ++i)
    list += (i == 0 ? "\"" : ", \"") + path_of(*schema.Column(i)) + "\" (" + kind_of(*schema.Column(i)) + ")";
  return list + (schema.num_columns() > kShown ? ", ..." : "");
}

class Texts final : public ParquetTexts {
 public:
  Texts(const std::string& path, const std::string& column) {
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    properties.enable_buffered_stream();
    properties.set_buffer_size(kBufferBytes);
    properties.set_page_checksum_verification(true);  // where the writer has made checksums
    file_ = parquet::ParquetFileReader::OpenFile(path, false, properties);
    const parquet::SchemaDescriptor& schema = *file_->metadata()->schema();
    while (column_ < schema.num_columns() && path_of(*schema.Column(column_)) != column) ++column_;
    if (column_ == schema.num_columns() || is_nested(*schema.Column(column_)) || !is_text(*schema.Column(column_)))
      throw std::invalid_argument(shown_columns(schema));
  }

  bool next(std::string_view& text) override {
    try {
      while (at_ == count_)
        if (!fill()) return false;
    } catch (const parquet::ParquetException& error) {
      throw std::runtime_error(error.what());
    }
    const parquet::ByteArray& value = values_[size_t(at_++)];
    text = {reinterpret_cast<const char*>(value.ptr), value.len};
    return true;
  }

  int64_t rows_read() const override { return rows_read_; }
  int64_t rows() const override { return file_->metadata()->num_rows(); }

 private:
  /// The next values, all of one page; false behind the last row group.
  bool fill() {
    at_ = count_ = 0;
    if (reader_ && reader_->HasNext()) {
      int64_t rows = reader_->ReadBatch(kAtOnce, levels_.data(), nullptr, values_.data(), &count_);
      if (rows <= 0) throw std::runtime_error("a page without values where the column has more");
      rows_read_ += rows;
      return true;
    }
    if (rows_read_ != group_end_) throw std::runtime_error("a row group with fewer values than rows");
    if (group_ == file_->metadata()->num_row_groups()) return false;
    row_group_ = file_->RowGroup(group_++);
    group_end_ += row_group_->metadata()->num_rows();
    reader_ = std::dynamic_pointer_cast<parquet::ByteArrayReader>(row_group_->Column(column_));
    if (!reader_) throw std::runtime_error("a column chunk of another type than the schema says");
    return true;
  }

  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::shared_ptr<parquet::RowGroupReader> row_group_;
  std::shared_ptr<parquet::ByteArrayReader> reader_;
  std::array<int16_t, size_t(kAtOnce)> levels_{};
  std::array<parquet::ByteArray, size_t(kAtOnce)> values_{};
  int column_ = 0, group_ = 0;  // the next row group
  int64_t at_ = 0, count_ = 0;  // of the values
  int64_t rows_read_ = 0, group_end_ = 0;
};

}  // namespace

}  // namespace tokamak

extern "C" __attribute__((visibility("default"))) tokamak::ParquetTexts* tokamak_open_parquet(const char* path,
                                                                                              const char* column) {
  try {
    return new tokamak::Texts(path, column);
  } catch (const parquet::ParquetException& error) {
    throw std::runtime_error(error.what());
  }
}
