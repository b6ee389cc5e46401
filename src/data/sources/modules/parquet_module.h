// What the program and the module over Arrow's library have in common. The module is a shared object of its own, which
// is opened when the first file of its formats is: Arrow's libraries come from a Python package, and nothing else of
// the program needs them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tokamak {

/// A row's document, as text or as ids: the other member is empty. Valid until the next call.
struct ColumnValue {
  std::string_view text;
  std::span<const int32_t> ids;
};

/// One column of a file, from its first row to the last: texts, or lists of integers. Made by the module and freed by
/// it.
class ColumnRows {
 public:
  virtual ~ColumnRows() = default;

  /// The next value, maybe an empty one; rows without one may be passed over. False at the end. Throws
  /// std::out_of_range, which says what a row has, for integers that are no ids or too many, and std::runtime_error for
  /// damage.
  virtual bool next(ColumnValue& value) = 0;

  virtual int64_t rows_read() const = 0;
  /// How much of the file that is, from 0 to 1.
  virtual double share_read() const = 0;
};

/// Opens the column of that name. Throws std::invalid_argument, which says what columns there are, where it has neither
/// texts nor lists of integers, and std::runtime_error for what is of another format or damaged.
using OpenColumn = ColumnRows* (*)(const char* path, const char* column);

/// The names of the module and of its functions of that type.
inline constexpr const char* kParquetModule = "tokamak_parquet.so";
inline constexpr const char* kOpenParquet = "tokamak_open_parquet";
inline constexpr const char* kOpenArrow = "tokamak_open_arrow";

/// Ids of a row: more are no document.
inline constexpr std::size_t kMostRowIds = std::size_t(1) << 26;

}  // namespace tokamak
