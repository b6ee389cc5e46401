#include "graph/type.h"

#include "base/error.h"

#include <array>

namespace tokamak {
namespace {

struct DTypeFacts {
  std::string_view name;
  int64_t bytes;
  bool floating;
};
constexpr std::array<DTypeFacts, 7> kFacts = {{{"f32", 4, true},
                                               {"bf16", 2, true},
                                               {"f16", 2, true},
                                               {"i32", 4, false},
                                               {"u8", 1, false},
                                               {"f8e4m3", 1, true},
                                               {"f8e5m2", 1, true}}};

const DTypeFacts& facts(DType dtype) { return kFacts[size_t(dtype)]; }

}  // namespace

int64_t dtype_bytes(DType dtype) { return facts(dtype).bytes; }
bool is_float(DType dtype) { return facts(dtype).floating; }
std::string_view dtype_name(DType dtype) { return facts(dtype).name; }

DType parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kFacts.size(); ++i)
    if (kFacts[i].name == name) return DType(i);
  user_error("[dtype] expected f32, bf16, f16, i32, u8, f8e4m3 or f8e5m2, got '{}'", name);
}

int64_t num_elements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t num_bytes(const ValueType& type) { return num_elements(type.shape) * dtype_bytes(type.dtype); }

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? "," : "") + std::to_string(shape[i]);
  return s + "]";
}

std::string to_string(const ValueType& type) { return std::string(dtype_name(type.dtype)) + to_string(type.shape); }

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view where) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1)
      user_error("[{}] expected shapes that broadcast to each other, got {} and {}", where, to_string(a), to_string(b));
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to) {
  TOKAMAK_CHECK(from.size() <= to.size(), "{} does not broadcast to {}", to_string(from), to_string(to));
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t d = from[from.size() - 1 - i];
    size_t at = to.size() - 1 - i;
    TOKAMAK_CHECK(d == to[at] || d == 1, "{} does not broadcast to {}", to_string(from), to_string(to));
    strides[at] = d == 1 ? 0 : stride;
    stride *= d;
  }
  return strides;
}

RowsCols rows_cols(const Shape& shape) {
  if (shape.empty()) return {1, 1};
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return {rows, shape.back()};
}

}  // namespace tokamak
