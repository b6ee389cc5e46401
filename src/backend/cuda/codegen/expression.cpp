#include "backend/cuda/codegen/expression.h"

#include "backend/cuda/codegen/precision.h"
#include "backend/cuda/device_types.h"
#include "backend/cuda/place_source.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "ops/element_place.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tokamak::cuda {
namespace {

std::string literal(double value) {
  auto single = float(value);
  if (std::isnan(single)) return "__int_as_float(0x7fc00000)";
  if (std::isinf(single)) return single > 0 ? "HUGE_VALF" : "-HUGE_VALF";
  return single < 0 ? fmt::format("({:.9e}f)", single) : fmt::format("{:.9e}f", single);
}

}  // namespace

Expression::Expression(const GroupBody& body, bool flattened)
    : body_(body), flattened_(flattened), coarse_(coarse_exponentials(body)) {
  for (const GroupValue& v : body.values) {
    Level level = v.along_cols || (flattened && v.along_rows) ? Level::kTile
                  : v.along_rows                              ? Level::kRow
                                                              : Level::kScalar;
    if (v.is(op::constant)) level = Level::kLiteral;
    if (level == Level::kScalar && v.reduces_cols()) level = Level::kRow;
    if (level == Level::kScalar)
      for (int operand : v.operands) level = std::max(level, std::min(levels_[size_t(operand)], Level::kRow));
    if (level == Level::kLiteral && !v.is(op::constant)) level = Level::kScalar;
    levels_.push_back(level);
  }
}

std::string Expression::name(int value) const {
  const GroupValue& v = body_.values[size_t(value)];
  return v.is(op::constant) ? literal(v.attrs.get_double("value")) : fmt::format("v{}", value);
}

std::string Expression::stored(const GroupResult& result) const {
  const GroupValue& v = body_.values[size_t(result.value)];
  bool rounds = v.is(op::cast) && v.dtype == result.type.dtype && v.dtype != DType::kI32;
  return name(rounds ? v.operands[0] : result.value);
}

std::string Expression::statement(int value) const {
  const GroupValue& v = body_.values[size_t(value)];
  return fmt::format("const float v{} = {};  // {}", value, right_side(v), v.op->name);
}

std::string Expression::definition(int value) const {
  const GroupValue& v = body_.values[size_t(value)];
  return v.is_input() ? fmt::format("const float v{} = to_float(a{}[{}]);", value, v.outer, place(value))
                      : statement(value);
}

bool Expression::is_column_limit(const GroupValue& v) const {
  if (!v.is(op::less) || body_.kind != &op::row) return false;
  const GroupValue &a = body_.values[size_t(v.operands[0])], &b = body_.values[size_t(v.operands[1])];
  return a.is(op::iota) && a.along_cols && a.attrs.get_int("dim") == 1 && !a.attrs.find("period") &&
         b.is(op::constant) && b.attrs.get_double("value") > double(body_.cols) / 2;
}

int64_t Expression::unmasked_cols() const {
  int64_t limit = body_.cols;
  for (const GroupValue& v : body_.values)
    if (is_column_limit(v)) {
      double bound = body_.values[size_t(v.operands[1])].attrs.get_double("value");
      limit = std::min(limit, int64_t(std::min(bound, double(body_.cols))));
    }
  return limit;
}

std::string Expression::iota(const GroupValue& v) const {
  auto dim = size_t(v.attrs.get_int("dim"));
  int64_t size = body_.shape(v)[dim], period = v.attrs.get_int("period", size);
  if (size <= 1) return "0.0f";
  bool repeats = period < size, by_row = !flattened_ && dim == 0;
  if (repeats) return fmt::format("float(({}) % Index({}))", by_row ? "row" : "column + i", period);
  if (by_row) return "float(row)";
  // Exact up to 2^24, and one addition an element.
  return body_.size() <= 1 << 24 || (!flattened_ && body_.cols <= 1 << 24) ? "float(column) + float(i)"
                                                                           : "float(column + i)";
}

// What tells a tensor's random numbers from others'.
std::string random_tensor(const GroupValue& v) {
  std::string text = fmt::format("{}u", uint64_t(v.attrs.get_int(kRandomStream)));
  if (!v.attrs.find("matrix")) return text;
  const std::vector<int64_t>& matrix = v.attrs.get_ints("matrix");
  return text + fmt::format(", {}, {}", matrix[0], matrix[1]);
}

// Element `index` of a rank's part of a random tensor, in the whole.
std::string random_element(const GroupValue& v, const std::string& index) {
  return place_in_whole(place_attr(v.attrs), "int64_t", fmt::format("a{}", v.outer), index);
}
bool keeps_runs(const GroupValue& v) { return ElementPlace(v.attrs, std::array<int, 6>{}).keeps_runs(); }

std::string Expression::unrounded(int value) const {
  const GroupValue& v = body_.values[size_t(value)];
  if (v.is(op::iota)) return iota(v);
  if (v.is(op::random_uniform))
    return fmt::format("{}(a{}, {}, {})", v.attrs.find("matrix") ? "matrix_uniform" : "uniform_element", v.outer,
                       random_element(v, v.along_rows ? "row" : "0"), random_tensor(v));
  auto operand = [&](size_t k) { return name(v.operands[k]); };
  if (v.is(op::cast)) return v.dtype == DType::kI32 ? fmt::format("scalar::cast_i32({})", operand(0)) : operand(0);
  TOKAMAK_CHECK(!v.op->scalar.empty(), "[group] '{}' has no scalar function", v.op->name);
  bool coarse = coarse_[size_t(value)];
  std::string call = fmt::format("scalar::{}({}", coarse ? "coarse_exp" : v.op->scalar, operand(0));
  for (size_t k = 1; k < v.operands.size(); ++k) call += ", " + operand(k);
  return call + ")";
}

std::string Expression::right_side(const GroupValue& v) const {
  std::string text = unrounded(int(&v - body_.values.data()));
  // As if it had been stored: what a value is must not depend on what it is fused with.
  if (is_rounded(v.dtype)) text = fmt::format("rounded<{}>({})", device_type(v.dtype), text);
  return is_column_limit(v) ? fmt::format("whole.value ? 1.0f : {}", text) : text;
}

std::string Expression::place(int value) const {
  const GroupValue& v = body_.values[size_t(value)];
  if (flattened_) return v.along_rows || v.along_cols ? "column" : "0";
  if (v.along_rows && v.along_cols) return "row * kCols + column";
  return v.along_rows ? "row" : v.along_cols ? "column" : "0";
}

std::string Expression::random_vector(int value) const {
  const GroupValue& v = body_.values[size_t(value)];
  std::string first = fmt::format("int64_t({})", place(value));
  bool of_matrix = v.attrs.find("matrix") != nullptr;
  if (!keeps_runs(v))
    return fmt::format("float u{0}[kVector]; for (int i = 0; i < kVector; ++i) u{0}[i] = {1}(a{2}, {3}, {4});", value,
                       of_matrix ? "matrix_uniform" : "uniform_element", v.outer, random_element(v, first + " + i"),
                       random_tensor(v));
  return fmt::format("float u{0}[kVector]; {1}<kVector>(a{2}, {3}, {4}, u{0});", value,
                     of_matrix ? "matrix_uniform_vector" : "uniform_vector", v.outer, random_element(v, first),
                     random_tensor(v));
}

void write_vector(Text& text, const GroupBody& body, const Expression& expression, const VectorCode& code) {
  for (int v : code.values)
    if (body.values[size_t(v)].is(op::random_uniform) && expression.level(v) == Level::kTile && code.source(v).empty())
      text.line("{}", expression.random_vector(v));
  text.unroll();
  text.open("for (int i = 0; i < kVector; ++i)");
  for (int v : code.values) {
    const GroupValue& value = body.values[size_t(v)];
    if (expression.level(v) != Level::kTile) continue;
    if (std::string from = code.source(v); !from.empty())
      text.line("const float v{} = {};", v, from);
    else if (value.is(op::random_uniform))
      text.line("const float v{0} = u{0}[i];  // random_uniform", v);
    else
      text.line("{}", expression.statement(v));
  }
  for (const std::string& action : code.actions) text.line("{}", action);
  text.close();
}

std::string parameters(const GroupBody& body, bool in_place) {
  std::string list;
  // A result may lie where an input of its type does, which is then not read-only (kernels/begin_kernel.cuh).
  std::set<int> overwritten;
  for (const GroupValue& v : body.values)
    for (const GroupResult& r : body.results)
      if (in_place && v.is_input() && body.is_full(v) && v.dtype == r.type.dtype) overwritten.insert(v.outer);
  std::vector<DType> types(body.inputs().size());
  for (const GroupValue& v : body.values)
    if (v.outer != kNoValue) types[size_t(v.outer)] = v.is_input() ? v.dtype : DType::kI32;  // or an rng
  for (size_t a = 0; a < types.size(); ++a)
    list +=
        fmt::format("const {}* {}a{}, ", device_type(types[a]), overwritten.count(int(a)) ? "" : "__restrict__ ", a);
  for (size_t r = 0; r < body.results.size(); ++r)
    list += fmt::format("{}* {}r{}, ", device_type(body.results[r].type.dtype), in_place ? "" : "__restrict__ ", r);
  return list + "float* __restrict__ partial";
}

std::string prelude(const GroupBody& body, int vector, const std::string& note) {
  const char* index = body.size() < int64_t(1) << 31 ? "uint32_t" : "uint64_t";
  return fmt::format(
      "// A {} group over ({}, {}): {}.\n#include \"backend/cuda/kernels/group.cuh\"\n\nusing namespace tokamak;\n"
      "using Index = {};  // of every element\nconstexpr Index kRows = {}, kCols = {};\n"
      "constexpr int kVector = {};  // elements of a thread side by side\n",
      body.kind->name, body.rows, body.cols, note, index, body.rows, body.cols, vector);
}

int64_t narrowest_bytes(const GroupBody& body) {
  int64_t bytes = 4;
  for (const GroupValue& v : body.values)
    if (v.is_input() && body.is_full(v)) bytes = std::min(bytes, dtype_bytes(v.dtype));
  for (const GroupResult& r : body.results)
    if (body.is_full(body.values[size_t(r.value)]))
      bytes = std::min(bytes, std::max<int64_t>(dtype_bytes(r.type.dtype), 2));
  return bytes;
}

int vector_length(int64_t n, int64_t limit) {
  int length = 1;
  while (2 * length <= limit && n % (2 * length) == 0) length *= 2;
  return length;
}

}  // namespace tokamak::cuda
