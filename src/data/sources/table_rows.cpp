#include "data/sources/table_rows.h"

#include <optional>

namespace tokamak {

namespace {

constexpr int kLeastRows = 4, kMostRows = 64;

/// Goes through the rows of what may be a table.
class Rows {
 public:
  Rows(std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {}

  /// How many fields the next whole row has; nothing at the end, or for a delimiter as prose has them.
  std::optional<int> next() {
    int fields = 1;
    for (bool begins = true, quoted = false; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"' && (begins || quoted)) {
        quoted = !quoted;
      } else if (!quoted && c == delimiter_) {
        if (is_prose(at_ + 1)) return std::nullopt;
        ++fields;
        begins = true;
        continue;
      } else if (!quoted && c == '\n') {
        ++at_;
        return fields;
      }
      begins = false;
    }
    return std::nullopt;
  }

 private:
  bool is_prose(size_t after) const {
    return delimiter_ != '\t' && after < text_.size() && (text_[after] == ' ' || text_[after] == '\n');
  }

  std::string_view text_;
  char delimiter_;
  size_t at_ = 0;
};

bool has_rows(std::string_view text, char delimiter) {
  Rows rows(text, delimiter);
  std::optional<int> fields = rows.next();
  if (!fields || *fields < 2) return false;
  int count = 1;
  for (std::optional<int> next; count < kMostRows && (next = rows.next()); ++count)
    if (*next != *fields) return false;
  return count >= kLeastRows;
}

}  // namespace

bool has_table_rows(std::string_view begin) {
  for (char delimiter : {'\t', ',', ';'})
    if (has_rows(begin, delimiter)) return true;
  return false;
}

}  // namespace tokamak
