// What the program and the module for Parquet have in common. The module is a shared object of its own, which is opened
// when the first such file is: Arrow's libraries come from a Python package, and nothing else of the program needs
// them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

/// The texts of one column of a file, from its first row to the last. Made by the module and freed by it.
class ParquetTexts {
 public:
  virtual ~ParquetTexts() = default;

  /// The next text, maybe an empty one, valid until the next call; rows without one are passed over. False at the end.
  /// Throws std::runtime_error for damage.
  virtual bool next(std::string_view& text) = 0;

  virtual int64_t rows_read() const = 0;
  virtual int64_t rows() const = 0;
};

/// Opens the column of that name. Throws std::invalid_argument, which says what columns there are, where it is none of
/// texts, and std::runtime_error for what is no Parquet or damaged.
using OpenParquet = ParquetTexts* (*)(const char* path, const char* column);

/// The names of the module and of its function of that type.
inline constexpr const char* kParquetModule = "tokamak_parquet.so";
inline constexpr const char* kOpenParquet = "tokamak_open_parquet";

}  // namespace tokamak
