#include "backend/cpu/chain.h"

#include "graph/op_def.h"
#include "ops/pointwise.h"
#include "ops/scalar_math.h"

#include <array>

namespace tokamak::cpu {
namespace {

using Binary = float (*)(float, float);

float sub_from(float a, float b) { return b - a; }

template <Binary kFirst, Binary kSecond, bool kA, bool kB, bool kC>
void loop(const float* a, const float* b, const float* c, int64_t n, float* out) {
  float ua = a[0], ub = b[0], uc = c[0];
#pragma GCC ivdep  // out may be an operand itself
  for (int64_t i = 0; i < n; ++i) out[i] = kSecond(kFirst(kA ? ua : a[i], kB ? ub : b[i]), kC ? uc : c[i]);
}

template <Binary kFirst, Binary kSecond>
void run(std::span<const TileOperand> in, int64_t n, float* out) {
  static constexpr std::array kLoops = {
      loop<kFirst, kSecond, false, false, false>, loop<kFirst, kSecond, true, false, false>,
      loop<kFirst, kSecond, false, true, false>,  loop<kFirst, kSecond, true, true, false>,
      loop<kFirst, kSecond, false, false, true>,  loop<kFirst, kSecond, true, false, true>,
      loop<kFirst, kSecond, false, true, true>,   loop<kFirst, kSecond, true, true, true>};
  kLoops[size_t(in[0].uniform + 2 * in[1].uniform + 4 * in[2].uniform)](in[0].data, in[1].data, in[2].data, n, out);
}

template <Binary kFirst>
ChainLoop with_second(const OpDef& second, int position) {
  if (&second == &op::add) return run<kFirst, scalar::add<float>>;
  if (&second == &op::mul) return run<kFirst, scalar::mul<float>>;
  if (&second == &op::sub) return position == 0 ? run<kFirst, scalar::sub<float>> : run<kFirst, sub_from>;
  return nullptr;
}

}  // namespace

ChainLoop find_chain(const OpDef& first, const OpDef& second, int position) {
  if (&first == &op::add) return with_second<scalar::add<float>>(second, position);
  if (&first == &op::sub) return with_second<scalar::sub<float>>(second, position);
  if (&first == &op::mul) return with_second<scalar::mul<float>>(second, position);
  return nullptr;
}

}  // namespace tokamak::cpu
