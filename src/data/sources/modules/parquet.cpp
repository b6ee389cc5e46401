// Parquet, over Arrow's C++ library: pages of one column, in order. A page, its dictionary and a buffer of the file are
// in memory, whatever a row group has.
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

#include "data/sources/modules/parquet_module.h"
#include "data/sources/modules/row_ids.h"

namespace tokamak {

namespace {

constexpr int64_t kBufferBytes = 1 << 20;
constexpr int64_t kAtOnce = 256;  // values
constexpr int kShown = 20;        // columns in a message

using File = std::unique_ptr<parquet::ParquetFileReader>;

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

/// A list of integers at the top: NAME.list.element, or as older writers call the two levels.
bool is_id_list(const parquet::ColumnDescriptor& column) {
  bool is_integer = column.physical_type() == parquet::Type::INT32 || column.physical_type() == parquet::Type::INT64;
  using Type = parquet::LogicalType::Type;
  Type::type type = column.logical_type()->type();
  return is_integer && (type == Type::NONE || type == Type::INT) && column.max_repetition_level() == 1 &&
         column.path()->ToDotVector().size() <= 3;
}

std::string kind_of(const parquet::ColumnDescriptor& column) {
  if (is_id_list(column)) return "list of integers";
  if (is_nested(column)) return "nested";
  if (is_text(column)) return "text";
  return column.logical_type()->is_none() ? parquet::TypeToString(column.physical_type())
                                          : column.logical_type()->ToString();
}

/// As users name it: lists by their own name, without that of their elements.
std::string name_of(const parquet::ColumnDescriptor& column) {
  return is_id_list(column) ? column.path()->ToDotVector()[0] : path_of(column);
}

std::string shown_columns(const parquet::SchemaDescriptor& schema) {
  std::string list;
  for (int i = 0; i < std::min(schema.num_columns(), kShown); ++i)
    list += (i == 0 ? "\"" : ", \"") + name_of(*schema.Column(i)) + "\" (" + kind_of(*schema.Column(i)) + ")";
  return list + (schema.num_columns() > kShown ? ", ..." : "");
}

/// The values of a column, some at a time, with what says which rows they are of.
template <typename Type>
class Values {
 public:
  Values(File file, int column)
      : file_(std::move(file)), column_(column),
        is_list_(file_->metadata()->schema()->Column(column)->max_repetition_level() > 0) {}

  /// The next of them, all of one page; false behind the last row group.
  bool fill() {
    values_read = levels_read = 0;
    if (reader_ && reader_->HasNext()) {
      levels_read = reader_->ReadBatch(kAtOnce, definition.data(), repetition.data(), values.data(), &values_read);
      if (levels_read <= 0) throw std::runtime_error("a page without values where the column has more");
      for (int64_t i = 0; i < levels_read; ++i) rows_read_ += !is_list_ || repetition[size_t(i)] == 0;
      return true;
    }
    if (rows_read_ != group_end_) throw std::runtime_error("a row group with fewer values than rows");
    if (group_ == file_->metadata()->num_row_groups()) return false;
    row_group_ = file_->RowGroup(group_++);
    group_end_ += row_group_->metadata()->num_rows();
    reader_ = std::dynamic_pointer_cast<parquet::TypedColumnReader<Type>>(row_group_->Column(column_));
    if (!reader_) throw std::runtime_error("a column chunk of another type than the schema says");
    return true;
  }

  int64_t rows_read() const { return rows_read_; }
  double share_read() const {
    int64_t rows = file_->metadata()->num_rows();
    return rows > 0 ? double(rows_read_) / double(rows) : 1;
  }
  /// The definition level of a value that is there.
  int whole_level() const { return file_->metadata()->schema()->Column(column_)->max_definition_level(); }

  std::array<int16_t, size_t(kAtOnce)> definition{}, repetition{};
  std::array<typename Type::c_type, size_t(kAtOnce)> values{};
  int64_t levels_read = 0, values_read = 0;

 private:
  File file_;
  std::shared_ptr<parquet::RowGroupReader> row_group_;
  std::shared_ptr<parquet::TypedColumnReader<Type>> reader_;
  int column_, group_ = 0;  // the next row group
  bool is_list_;
  int64_t rows_read_ = 0, group_end_ = 0;
};

/// What every reader has beside next().
template <typename Type>
class Rows : public ColumnRows {
 public:
  Rows(File file, int column) : from_(std::move(file), column) {}
  int64_t rows_read() const override { return from_.rows_read(); }
  double share_read() const override { return from_.share_read(); }

 protected:
  bool fill() {
    try {
      return from_.fill();
    } catch (const parquet::ParquetException& error) {
      throw std::runtime_error(error.what());
    }
  }

  Values<Type> from_;
};

/// Rows without a text are passed over.
class Texts final : public Rows<parquet::ByteArrayType> {
 public:
  using Rows::Rows;

  bool next(ColumnValue& value) override {
    while (at_ == from_.values_read) {
      at_ = 0;
      if (!fill()) return false;
    }
    const parquet::ByteArray& bytes = from_.values[size_t(at_++)];
    value = {.text = {reinterpret_cast<const char*>(bytes.ptr), bytes.len}, .ids = {}};
    return true;
  }

 private:
  int64_t at_ = 0;
};

template <typename Type>
class Lists final : public Rows<Type> {
 public:
  using Rows<Type>::Rows;

  bool next(ColumnValue& value) override {
    ids_.clear();
    for (bool begun = false;; begun = true) {
      while (level_ == this->from_.levels_read) {
        level_ = at_ = 0;
        if (this->fill()) continue;
        value = {.text = {}, .ids = ids_.get()};
        return begun;
      }
      if (begun && this->from_.repetition[size_t(level_)] == 0) break;  // the next row
      add();
    }
    value = {.text = {}, .ids = ids_.get()};
    return true;
  }

 private:
  // Behind the level of a value that is there: of one that is not, or of a list that is empty or not there.
  void add() {
    int missing = this->from_.whole_level() - this->from_.definition[size_t(level_++)];
    if (missing == 0) ids_.add(this->from_.values[size_t(at_++)]);
  }

  RowIds ids_;
  int64_t level_ = 0, at_ = 0;
};

ColumnRows* open(const std::string& path, const std::string& name) {
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.enable_buffered_stream();
  properties.set_buffer_size(kBufferBytes);
  properties.set_page_checksum_verification(true);  // where the writer has made checksums
  File file = parquet::ParquetFileReader::OpenFile(path, false, properties);
  const parquet::SchemaDescriptor& schema = *file->metadata()->schema();
  int column = 0;
  while (column < schema.num_columns() && name_of(*schema.Column(column)) != name) ++column;
  if (column == schema.num_columns()) throw std::invalid_argument(shown_columns(schema));
  const parquet::ColumnDescriptor& found = *schema.Column(column);
  bool is_long = found.physical_type() == parquet::Type::INT64;
  if (is_id_list(found) && is_long) return new Lists<parquet::Int64Type>(std::move(file), column);
  if (is_id_list(found)) return new Lists<parquet::Int32Type>(std::move(file), column);
  if (is_nested(found) || !is_text(found)) throw std::invalid_argument(shown_columns(schema));
  return new Texts(std::move(file), column);
}

}  // namespace

}  // namespace tokamak

extern "C" __attribute__((visibility("default"))) tokamak::ColumnRows* tokamak_open_parquet(const char* path,
                                                                                            const char* column) {
  try {
    return tokamak::open(path, column);
  } catch (const parquet::ParquetException& error) {
    throw std::runtime_error(error.what());
  }
}
