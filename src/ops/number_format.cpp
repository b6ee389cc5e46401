#include "ops/number_format.h"

#include "base/error.h"

namespace tokamak {

std::string_view format_name(NumberFormat format) {
  return format == NumberFormat::kTf32 ? "tf32" : dtype_name(storage_of(format));
}

DType storage_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::kBf16: return DType::kBF16;
    case NumberFormat::kF16: return DType::kF16;
    case NumberFormat::kF8E4M3: return DType::kF8E4M3;
    case NumberFormat::kF8E5M2: return DType::kF8E5M2;
    case NumberFormat::kF32:
    case NumberFormat::kTf32: break;
  }
  return DType::kF32;
}

NumberFormat format_of(DType dtype, bool tf32) {
  switch (dtype) {
    case DType::kBF16: return NumberFormat::kBf16;
    case DType::kF16: return NumberFormat::kF16;
    case DType::kF8E4M3: return NumberFormat::kF8E4M3;
    case DType::kF8E5M2: return NumberFormat::kF8E5M2;
    case DType::kF32: return tf32 ? NumberFormat::kTf32 : NumberFormat::kF32;
    case DType::kI32:
    case DType::kU8: break;
  }
  internal_error(__FILE__, __LINE__, "number_format", fmt::format("a product of {}", dtype_name(dtype)));
}

NumberFormat format_of(Precision precision) {
  switch (precision) {
    case Precision::kTf32: return NumberFormat::kTf32;
    case Precision::kFp8:  // of some products; the others are in bf16 (passes/float8_products.h)
    case Precision::kBf16: return NumberFormat::kBf16;
    case Precision::kFp16: return NumberFormat::kF16;
    case Precision::kAuto:
    case Precision::kFp32: break;
  }
  return NumberFormat::kF32;
}

double product_rate(const Target& target, NumberFormat format) {
  switch (format) {
    case NumberFormat::kF8E4M3:
    case NumberFormat::kF8E5M2: return target.fp8_flops > 0 ? target.fp8_flops : target.bf16_flops;
    case NumberFormat::kBf16:
    case NumberFormat::kF16: return target.bf16_flops;
    case NumberFormat::kTf32: return target.tf32_flops > 0 ? target.tf32_flops : target.f32_flops;
    case NumberFormat::kF32: break;
  }
  return target.f32_flops;
}

}  // namespace tokamak
