// What is known of a value before it exists: its element type and its static shape.
#pragma once

#include "base/short_list.h"
#include "graph/shape.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// kF8E4M3 and kF8E5M2: eight bits, of which 4 or 5 are the exponent's (ops/float8.h).
enum class DType : uint8_t { kF32, kBF16, kF16, kI32, kU8, kF8E4M3, kF8E5M2 };

struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const ValueType&) const = default;
};
using ValueTypes = ShortList<ValueType, 2>;

int64_t dtype_bytes(DType dtype);
bool is_float(DType dtype);
/// Whether it is a float of eight bits.
constexpr bool is_float8(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }
/// Whether a number loses bits when it is stored in this type: floats narrower than f32.
constexpr bool is_rounded(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16 || is_float8(dtype); }
std::string_view dtype_name(DType dtype);  // "f32"
DType parse_dtype(std::string_view name);  // throws UserError naming the known ones

int64_t num_elements(const Shape& shape);
int64_t num_bytes(const ValueType& type);
std::string to_string(const Shape& shape);     // "[4,64]"
std::string to_string(const ValueType& type);  // "f32[4,64]"

/// Shape that numpy-style broadcasting gives for both; throws UserError tagged with `where` when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view where);

/// Row-major strides of a tensor of `from` read with the shape `to`: 0 along broadcast dims. `from` must broadcast.
std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to);

/// Product of all dims but the last, and the last (1 for a scalar).
struct RowsCols {
  int64_t rows, cols;
};
RowsCols rows_cols(const Shape& shape);

}  // namespace tokamak
