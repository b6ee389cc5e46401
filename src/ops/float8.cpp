#include "ops/float8.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tokamak {
namespace {

struct Form {
  int mantissa_bits, bias;
  double largest;
  uint8_t nan;
  int least_exponent() const { return 1 - bias; }  // of numbers with all their bits
};

Form form_of(DType type) {
  TOKAMAK_CHECK(type == DType::kF8E4M3 || type == DType::kF8E5M2, "{} has no eight bits", dtype_name(type));
  return type == DType::kF8E4M3 ? Form{3, 7, 448, 0x7f} : Form{2, 15, 57344, 0x7e};
}

// The exponent in which a number's mantissa is counted: smaller numbers have fewer bits.
int exponent_of(const Form& form, double magnitude) {
  return magnitude == 0 ? form.least_exponent() : std::max(std::ilogb(magnitude), form.least_exponent());
}

}  // namespace

double largest_float8(DType type) { return form_of(type).largest; }

double round_float8(DType type, double value) {
  Form form = form_of(type);
  if (std::isnan(value)) return value;
  double magnitude = std::min(std::fabs(value), form.largest);
  double unit = std::ldexp(1.0, exponent_of(form, magnitude) - form.mantissa_bits);
  return std::copysign(std::min(std::nearbyint(magnitude / unit) * unit, form.largest), value);
}

uint8_t encode_float8(DType type, double value) {
  Form form = form_of(type);
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | form.nan;
  double magnitude = std::fabs(value);
  int exponent = exponent_of(form, magnitude);
  auto units = int(std::ldexp(magnitude, form.mantissa_bits - exponent));  // with the leading bit, if it has one
  // A leading bit carries into the exponent, which is one more than 0 then.
  return uint8_t(sign | (((exponent - form.least_exponent()) << form.mantissa_bits) + units));
}

double decode_float8(DType type, uint8_t bits) {
  Form form = form_of(type);
  int code = bits & 0x7f, exponent = code >> form.mantissa_bits, mantissa = code & ((1 << form.mantissa_bits) - 1);
  double magnitude = exponent == 0
                         ? std::ldexp(mantissa, form.least_exponent() - form.mantissa_bits)
                         : std::ldexp(mantissa + (1 << form.mantissa_bits), exponent - form.bias - form.mantissa_bits);
  if (magnitude > form.largest)
    magnitude = type == DType::kF8E5M2 && code == 0x7c ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  return bits & 0x80 ? -magnitude : magnitude;
}

}  // namespace tokamak
