// Rows of CSV and TSV, by libcsv: fields as RFC 4180 has them, in quotes with line breaks and doubled quotes inside.
// Tests: tests/data/sources/optional/csv_test.cpp.
#pragma once

#include <csv.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "data/sources/byte_stream.h"

namespace tokamak {

class CsvRows {
 public:
  using Row = std::vector<std::string>;

  /// From the beginning of a stream. The delimiter is the one of comma, semicolon and tab that the first line has most
  /// of, of a name that ends in .tsv a tab.
  explicit CsvRows(std::unique_ptr<ByteStream> stream, size_t most_bytes);
  ~CsvRows();
  CsvRows(const CsvRows&) = delete;
  CsvRows& operator=(const CsvRows&) = delete;

  /// The next row, blank lines passed over; false at the end. UserErrors name the row (the first is row 1) for quotes
  /// that stand within a field or are never closed, and for a row of more than `most_bytes`.
  bool next(Row& row);

  int64_t number() const { return number_; }  // of the row that next() gave
  const ByteStream& stream() const { return buffer_.stream(); }

 private:
  void parse_more();
  void check(bool is_parsed) const;

  ByteBuffer buffer_;
  size_t most_bytes_;
  csv_parser parser_ = {};
  bool is_done_ = false;
  std::deque<Row> rows_;  // complete
  Row fields_;            // of the next row
  size_t bytes_ = 0;      // parsed since a row was complete
  int64_t number_ = 0;
};

}  // namespace tokamak
