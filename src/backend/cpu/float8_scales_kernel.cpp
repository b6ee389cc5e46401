// float8_scales: vectors so short that one thread takes them all.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "ops/float8_scales.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tokamak::cpu {
namespace {

class Float8ScalesKernel : public Kernel {
 public:
  Float8ScalesKernel(const Graph& graph, const Node& node) : bounds_(float8_bounds(node)) {
    for (ValueId input : node.inputs) types_.push_back(graph.type(input));
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    size_t next = 0;
    for (size_t i = 0; i < bounds_.size(); ++i) {
      std::array<double, 4> largest{};
      std::array<ValueId, 4> operands = operands_of(bounds_[i]);
      for (size_t o = 0; o < operands.size(); ++o)
        if (operands[o] != kNoValue) largest[o] = largest_of(types_[next], in[next]), ++next;
      Float8Limits limits = limits_of(bounds_[i], largest, [](double x) { return double(float(x)); });
      *static_cast<float*>(out[2 * i]) = float(limits.scale);
      *static_cast<float*>(out[2 * i + 1]) = float(limits.inverse);
    }
  }

 private:
  static double largest_of(const ValueType& type, const void* from) {
    std::vector<float> x(size_t(num_elements(type.shape)));
    load(type.dtype, from, 0, int64_t(x.size()), x.data());
    float largest = 0;
    for (float v : x) largest = std::max(largest, std::fabs(v));
    return double(largest);
  }

  std::vector<Float8Bound> bounds_;
  ValueTypes types_;
};

}  // namespace

std::unique_ptr<Kernel> make_float8_scales_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<Float8ScalesKernel>(graph, node);
}

}  // namespace tokamak::cpu
