#include "data/sources/optional/csv_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/sources/content.h"

namespace tokamak {

namespace {

// Blanks are part of a field.
int is_no_space(unsigned char) { return 0; }

unsigned char find_delimiter(std::string_view begin, std::string_view name) {
  if (has_ending(name, ".tsv")) return '\t';
  std::string_view line = begin.substr(0, begin.find('\n'));
  auto count = [&](char c) { return std::count(line.begin(), line.end(), c); };
  return static_cast<unsigned char>(std::max({',', ';', '\t'}, [&](char a, char b) { return count(a) < count(b); }));
}

}  // namespace

CsvRows::CsvRows(std::unique_ptr<ByteStream> stream, size_t most_bytes)
    : buffer_(std::move(stream)), most_bytes_(most_bytes) {
  TOKAMAK_CHECK(csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0, "libcsv cannot begin");
  csv_set_space_func(&parser_, is_no_space);
  buffer_.hold(kContentBegin);
  if (buffer_.view().starts_with(kByteOrderMark)) buffer_.consume(kByteOrderMark.size());
  csv_set_delim(&parser_, find_delimiter(buffer_.view(), buffer_.stream().name()));
}

CsvRows::~CsvRows() { csv_free(&parser_); }

bool CsvRows::next(Row& row) {
  while (rows_.empty() && !is_done_) parse_more();
  if (rows_.empty()) return false;
  row = std::move(rows_.front());
  rows_.pop_front();
  ++number_;
  return true;
}

void CsvRows::parse_more() {
  auto add_field = [](void* field, size_t size, void* rows) {
    static_cast<CsvRows*>(rows)->fields_.emplace_back(static_cast<const char*>(field), size);
  };
  auto add_row = [](int, void* self) {
    auto& rows = *static_cast<CsvRows*>(self);
    rows.rows_.push_back(std::exchange(rows.fields_, {}));
    rows.bytes_ = 0;
  };
  std::string_view bytes = buffer_.view();
  bytes_ += bytes.size();
  check(csv_parse(&parser_, bytes.data(), bytes.size(), add_field, add_row, this) == bytes.size());
  buffer_.consume(bytes.size());
  if (bytes_ > most_bytes_)
    user_error("[csv] {} row {}: expected a row of at most {} bytes, got more; is a quote never closed?",
               stream().name(), number_ + int64_t(rows_.size()) + 1, most_bytes_);
  if (buffer_.fill()) return;
  is_done_ = true;
  check(csv_fini(&parser_, add_field, add_row, this) == 0);
}

void CsvRows::check(bool is_parsed) const {
  if (!is_parsed)
    user_error(
        "[csv] {} row {}: expected quotes around a whole field, and two for one inside of it, got another quote or the "
        "end; write it again with quotes as RFC 4180 has them (Python's csv module does), or read it as it is with "
        "--format=text",
        stream().name(), number_ + int64_t(rows_.size()) + 1);
}

}  // namespace tokamak
