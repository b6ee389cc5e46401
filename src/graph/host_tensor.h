// A tensor of the reference interpreter: every element in double precision, whatever its dtype says. Elements of bf16
// and f16 tensors hold values that the type can represent; f32 is not rounded.
#pragma once

#include "graph/type.h"

namespace tokamak {

struct HostTensor {
  ValueType type;
  std::vector<double> data;

  HostTensor() = default;
  explicit HostTensor(ValueType t) : type(std::move(t)), data(size_t(num_elements(type.shape)), 0.0) {}
  HostTensor(ValueType t, std::vector<double> values) : type(std::move(t)), data(std::move(values)) {}

  const Shape& shape() const { return type.shape; }
  int64_t size() const { return int64_t(data.size()); }
  double& operator[](int64_t i) { return data[size_t(i)]; }
  double operator[](int64_t i) const { return data[size_t(i)]; }
};

}  // namespace tokamak
