// What all pointwise ops have in common: shape rule, reference loop and tile kernel, made from one scalar function.
#pragma once

#include "graph/builder.h"
#include "graph/host_tensor.h"

#include <array>
#include <functional>

namespace tokamak {

/// Broadcast shape; the widest float type of the inputs (integers count as f32).
ValueTypes infer_pointwise(const NodeSpec& spec);

/// Sums `value` down to `shape`, undoing a broadcast; returns it unchanged when the shapes agree.
ValueId sum_to_shape(GraphBuilder& builder, ValueId value, const Shape& shape);

/// Calls body(index, offset of each operand) for every element of `shape` in row-major order.
void for_each_broadcast(const Shape& shape, std::span<const HostTensor* const> inputs,
                        const std::function<void(int64_t, std::span<const int64_t>)>& body);

namespace detail {

template <float (*F)(float)>
void tile1(const Node&, std::span<const TileOperand> in, int64_t, int64_t n, float* out) {
  const float* a = in[0].data;
  if (in[0].uniform) {
    float value = F(*a);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
#pragma GCC ivdep  // out may be a itself
  for (int64_t i = 0; i < n; ++i) out[i] = F(a[i]);
}

template <float (*F)(float, float), bool kA, bool kB>
void loop2(const float* a, const float* b, int64_t n, float* out) {
  float ua = a[0], ub = b[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = F(kA ? ua : a[i], kB ? ub : b[i]);
}

template <float (*F)(float, float)>
void tile2(const Node&, std::span<const TileOperand> in, int64_t, int64_t n, float* out) {
  static constexpr std::array kLoops = {loop2<F, false, false>, loop2<F, true, false>, loop2<F, false, true>,
                                        loop2<F, true, true>};
  kLoops[size_t(in[0].uniform + 2 * in[1].uniform)](in[0].data, in[1].data, n, out);
}

template <float (*F)(float, float, float), bool kA, bool kB, bool kC>
void loop3(const float* a, const float* b, const float* c, int64_t n, float* out) {
  float ua = a[0], ub = b[0], uc = c[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = F(kA ? ua : a[i], kB ? ub : b[i], kC ? uc : c[i]);
}

template <float (*F)(float, float, float)>
void tile3(const Node&, std::span<const TileOperand> in, int64_t, int64_t n, float* out) {
  static constexpr std::array kLoops = {loop3<F, false, false, false>, loop3<F, true, false, false>,
                                        loop3<F, false, true, false>,  loop3<F, true, true, false>,
                                        loop3<F, false, false, true>,  loop3<F, true, false, true>,
                                        loop3<F, false, true, true>,   loop3<F, true, true, true>};
  kLoops[size_t(in[0].uniform + 2 * in[1].uniform + 4 * in[2].uniform)](in[0].data, in[1].data, in[2].data, n, out);
}

template <double (*F)(double)>
void reference1(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  for_each_broadcast(out[0].shape(), in,
                     [&](int64_t i, std::span<const int64_t> at) { out[0][i] = F((*in[0])[at[0]]); });
}
template <double (*F)(double, double)>
void reference2(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  for_each_broadcast(out[0].shape(), in,
                     [&](int64_t i, std::span<const int64_t> at) { out[0][i] = F((*in[0])[at[0]], (*in[1])[at[1]]); });
}
template <double (*F)(double, double, double)>
void reference3(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  for_each_broadcast(out[0].shape(), in, [&](int64_t i, std::span<const int64_t> at) {
    out[0][i] = F((*in[0])[at[0]], (*in[1])[at[1]], (*in[2])[at[2]]);
  });
}

int in_place_any(const Node& node, int output);

}  // namespace detail

using GradientFn = decltype(OpDef::gradient);

/// Records of pointwise ops with one, two and three operands: F and D are the scalar function in float and in double.
template <float (*F)(float), double (*D)(double)>
constexpr OpDef pointwise1(std::string_view name, std::string_view scalar, GradientFn gradient) {
  return {.name = name,
          .infer = infer_pointwise,
          .gradient = gradient,
          .reference = detail::reference1<D>,
          .fusion = Fusion::kPointwise,
          .scalar = scalar,
          .tile = detail::tile1<F>,
          .in_place = detail::in_place_any};
}
template <float (*F)(float, float), double (*D)(double, double)>
constexpr OpDef pointwise2(std::string_view name, std::string_view scalar, GradientFn gradient) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_pointwise,
          .gradient = gradient,
          .reference = detail::reference2<D>,
          .fusion = Fusion::kPointwise,
          .scalar = scalar,
          .tile = detail::tile2<F>,
          .in_place = detail::in_place_any};
}
template <float (*F)(float, float, float), double (*D)(double, double, double)>
constexpr OpDef pointwise3(std::string_view name, std::string_view scalar, GradientFn gradient) {
  return {.name = name,
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_pointwise,
          .gradient = gradient,
          .reference = detail::reference3<D>,
          .fusion = Fusion::kPointwise,
          .scalar = scalar,
          .tile = detail::tile3<F>,
          .in_place = detail::in_place_any};
}

}  // namespace tokamak
