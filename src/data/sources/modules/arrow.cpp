// Arrow's own formats, as the cache of Hugging Face's `datasets` has them (a stream) and its save_to_disk() or Feather
// (a stream, or a file): record batches of one column, one at a time in memory.
#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/type.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "data/sources/modules/parquet_module.h"
#include "data/sources/modules/row_ids.h"

namespace tokamak {

namespace {

constexpr int kShown = 20;  // columns in a message

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <typename T>
T check(arrow::Result<T> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

bool is_text(const arrow::DataType& type) {
  using Id = arrow::Type;
  return type.id() == Id::STRING || type.id() == Id::LARGE_STRING || type.id() == Id::BINARY ||
         type.id() == Id::LARGE_BINARY;
}

bool is_id_list(const arrow::DataType& type) {
  if (type.id() != arrow::Type::LIST && type.id() != arrow::Type::LARGE_LIST) return false;
  arrow::Type::type of = type.field(0)->type()->id();
  return of == arrow::Type::INT32 || of == arrow::Type::INT64 || of == arrow::Type::UINT16 || of == arrow::Type::UINT32;
}

std::string shown_columns(const arrow::Schema& schema) {
  std::string list;
  for (int i = 0; i < std::min(schema.num_fields(), kShown); ++i)
    list += (i == 0 ? "\"" : ", \"") + schema.field(i)->name() + "\" (" + schema.field(i)->type()->ToString() + ")";
  return list + (schema.num_fields() > kShown ? ", ..." : "");
}

/// The batches of a file in either form.
class Batches {
 public:
  explicit Batches(const std::string& path) : input_(check(arrow::io::ReadableFile::Open(path))) {
    size_ = check(input_->GetSize());
    auto begin = check(input_->ReadAt(0, 6));
    check(input_->Seek(0));
    if (begin->ToString() == "ARROW1")
      file_ = check(arrow::ipc::RecordBatchFileReader::Open(input_));
    else
      stream_ = check(arrow::ipc::RecordBatchStreamReader::Open(input_));
  }

  std::shared_ptr<arrow::Schema> schema() const { return file_ ? file_->schema() : stream_->schema(); }

  /// The next one, every offset and size in it checked; null at the end.
  std::shared_ptr<arrow::RecordBatch> next() {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (stream_) check(stream_->ReadNext(&batch));
    if (file_ && number_ < file_->num_record_batches()) batch = check(file_->ReadRecordBatch(number_++));
    if (batch) check(batch->ValidateFull());
    return batch;
  }

  double share_read() const {
    if (file_) return file_->num_record_batches() > 0 ? double(number_) / double(file_->num_record_batches()) : 1;
    arrow::Result<int64_t> at = input_->Tell();
    return size_ > 0 && at.ok() ? std::min(double(*at) / double(size_), 1.0) : 1;
  }

 private:
  std::shared_ptr<arrow::io::ReadableFile> input_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream_;
  int64_t size_ = 0;
  int number_ = 0;
};

class ArrowRows final : public ColumnRows {
 public:
  ArrowRows(const std::string& path, const std::string& column) : batches_(path) {
    std::shared_ptr<arrow::Schema> schema = batches_.schema();
    column_ = schema->GetFieldIndex(column);  // -1: none, or several
    if (column_ < 0 || !(is_text(*schema->field(column_)->type()) || is_id_list(*schema->field(column_)->type())))
      throw std::invalid_argument(shown_columns(*schema));
  }

  bool next(ColumnValue& value) override {
    while (!rows_ || at_ == rows_->length()) {
      std::shared_ptr<arrow::RecordBatch> batch = batches_.next();
      if (!batch) return false;
      rows_ = batch->column(column_);
      at_ = 0;
    }
    int64_t row = at_++;
    ++rows_read_;
    value = {};
    if (!rows_->IsNull(row)) value = value_at(row);
    return true;
  }

  int64_t rows_read() const override { return rows_read_; }
  double share_read() const override { return batches_.share_read(); }

 private:
  ColumnValue value_at(int64_t row) {
    switch (rows_->type_id()) {
      case arrow::Type::STRING:
      case arrow::Type::BINARY: return text<arrow::BinaryArray>(row);
      case arrow::Type::LARGE_STRING:
      case arrow::Type::LARGE_BINARY: return text<arrow::LargeBinaryArray>(row);
      case arrow::Type::LIST: return ids<arrow::ListArray>(row);
      case arrow::Type::LARGE_LIST: return ids<arrow::LargeListArray>(row);
      default: throw std::runtime_error("a batch of another type than the schema says");
    }
  }

  template <typename Array>
  ColumnValue text(int64_t row) const {
    return {.text = static_cast<const Array&>(*rows_).GetView(row), .ids = {}};
  }

  template <typename Array>
  ColumnValue ids(int64_t row) {
    const auto& list = static_cast<const Array&>(*rows_);
    int64_t begin = list.value_offset(row), end = begin + list.value_length(row);
    ids_.clear();
    switch (list.values()->type_id()) {
      case arrow::Type::INT32: add<arrow::Int32Array>(*list.values(), begin, end); break;
      case arrow::Type::INT64: add<arrow::Int64Array>(*list.values(), begin, end); break;
      case arrow::Type::UINT16: add<arrow::UInt16Array>(*list.values(), begin, end); break;
      case arrow::Type::UINT32: add<arrow::UInt32Array>(*list.values(), begin, end); break;
      default: throw std::runtime_error("a list of another type than the schema says");
    }
    return {.text = {}, .ids = ids_.get()};
  }

  template <typename Array>
  void add(const arrow::Array& values, int64_t begin, int64_t end) {
    const auto& typed = static_cast<const Array&>(values);
    for (int64_t i = begin; i < end; ++i)
      if (!typed.IsNull(i)) ids_.add(typed.Value(i));
  }

  Batches batches_;
  std::shared_ptr<arrow::Array> rows_;
  RowIds ids_;
  int column_ = -1;
  int64_t at_ = 0, rows_read_ = 0;
};

}  // namespace

}  // namespace tokamak

extern "C" __attribute__((visibility("default"))) tokamak::ColumnRows* tokamak_open_arrow(const char* path,
                                                                                          const char* column) {
  return new tokamak::ArrowRows(path, column);
}
