#include "ops/matmul_formats.h"

#include "base/error.h"

namespace tokamak {
namespace {

DType dtype_attr(const Attrs& attrs, std::string_view name, DType fallback) {
  return attrs.find(name) ? parse_dtype(attrs.get_string(name)) : fallback;
}

// What a product of such operands is stored in where nothing else is said.
bool has_common_type(const MatmulFormats& formats) { return storage_of(formats.a) == storage_of(formats.b); }

}  // namespace

MatmulFormats uniform_formats(NumberFormat format) { return {format, format, DType::kF32, storage_of(format)}; }

MatmulFormats matmul_formats(const NodeSpec& matmul) {
  const ValueType &a = matmul.inputs[0], &b = matmul.inputs[1];
  if (a.dtype != b.dtype && !matmul.attrs.find("result"))
    user_error("[matmul] expected operands of one dtype or an attribute result, got {} and {}", to_string(a),
               to_string(b));
  for (const ValueType& operand : {a, b})
    if (!is_float(operand.dtype)) user_error("[matmul] expected operands of a float type, got {}", to_string(operand));
  bool tf32 = matmul.attrs.get_bool("tf32", false);
  return {format_of(a.dtype, tf32), format_of(b.dtype, tf32), dtype_attr(matmul.attrs, "accumulator", DType::kF32),
          dtype_attr(matmul.attrs, "result", a.dtype)};
}

void set_formats(Attrs& attrs, const MatmulFormats& formats) {
  auto is = [&](NumberFormat format) { return formats.a == format || formats.b == format; };
  TOKAMAK_CHECK(!is(NumberFormat::kTf32) || !is(NumberFormat::kF32), "of a product, TF32 is for all f32 operands");
  if (is(NumberFormat::kTf32)) attrs.set("tf32", true);
  if (formats.accumulator != DType::kF32) attrs.set("accumulator", std::string(dtype_name(formats.accumulator)));
  if (!has_common_type(formats) || formats.result != storage_of(formats.a))
    attrs.set("result", std::string(dtype_name(formats.result)));
}

NumberFormat operand_format(const Graph& graph, const Node& node, size_t input) {
  return format_of(graph.dtype(node.inputs[input]), node.attrs.get_bool("tf32", false));
}

}  // namespace tokamak
