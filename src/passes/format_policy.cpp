#include "passes/format_policy.h"

namespace tokamak {

FormatPolicy policy_of(Precision precision, const Target& target) {
  NumberFormat format = format_of(precision);
  if (format == NumberFormat::kTf32 && target.tf32_flops <= 0) format = NumberFormat::kF32;
  return [format](const Product&) { return uniform_formats(format); };
}

FormatPolicy policy_by_use(const MatmulFormats& forward, const MatmulFormats& input_gradient,
                           const MatmulFormats& weight_gradient) {
  return [=](const Product& product) {
    switch (product.use) {
      case ProductUse::kInputGradient: return input_gradient;
      case ProductUse::kWeightGradient: return weight_gradient;
      case ProductUse::kForward: break;
    }
    return forward;
  };
}

}  // namespace tokamak
