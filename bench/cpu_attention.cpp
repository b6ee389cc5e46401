// GFLOP/s of the CPU's attention at B=4, T=1024, C=768 for several head sizes, next to the machine's sgemm rate: with
// products of f32, and of bf16 by each kind of units that the CPU has for them.
// FLOPs are those that a causal attention needs: 2 products of T x T x D / 2 a head forward, 5 backward.
#include "backend/cpu/attention.h"
#include "backend/cpu/measure.h"
#include "backend/cpu/simd.h"
#include "backend/cpu/tiled_attention.h"
#include "base/parallel.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

using namespace tokamak;

namespace {

constexpr const int32_t* kOneDocument = nullptr;  // nothing is masked between documents

cpu::AttentionShape shape_of(int64_t head_dim) {
  return {4, 1024, 768 / head_dim, head_dim, true, 1 / std::sqrt(float(head_dim))};
}

// forward(qkv, out, lse, workspace) and backward(qkv, out, lse, dout, dqkv, workspace).
template <typename T, typename Forward, typename Backward>
void print_row(const char* type, const cpu::AttentionShape& s, float dropout, double sgemm, Forward run_forward,
               Backward run_backward) {
  size_t n = size_t(s.batch * s.time * s.width());
  std::vector<T> qkv(3 * n), out(n), dout(n), dqkv(3 * n);
  for (size_t i = 0; i < 3 * n; ++i) qkv[i] = cpu::from_float<T>(float(i * 7919 % 1000) / 500 - 1);
  for (size_t i = 0; i < n; ++i) dout[i] = cpu::from_float<T>(float(i * 7907 % 1000) / 500 - 1);
  std::vector<float> lse(size_t(s.batch * s.heads * s.time));
  int threads = num_threads();
  size_t bytes = std::max({cpu::attention_workspace_bytes(s, threads), cpu::attention_grad_workspace_bytes(s, threads),
                           cpu::tiled_attention_workspace_bytes(s, threads),
                           cpu::tiled_attention_grad_workspace_bytes(s, threads)});
  std::vector<char> memory(bytes + 64);
  void* workspace =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);  // as a plan's
  double forward = cpu::best_seconds(0.4, [&] { run_forward(qkv.data(), out.data(), lse.data(), workspace); });
  double backward = cpu::best_seconds(
      0.4, [&] { run_backward(qkv.data(), out.data(), lse.data(), dout.data(), dqkv.data(), workspace); });
  double flops = 4.0 * double(s.batch * s.heads * s.time * s.time * s.head_dim) / 2;
  fmt::print("{:<19}{:>5}{:>5}{:>9.1f}{:>10.1f} ms{:>8.0f}{:>6.0f}%{:>10.1f} ms{:>8.0f}{:>6.0f}%\n", type, s.head_dim,
             s.heads, dropout, forward * 1e3, flops / forward / 1e9, 100 * flops / forward / sgemm, backward * 1e3,
             2.5 * flops / backward / 1e9, 250 * flops / backward / sgemm);
}

template <typename T>
void print_f32(const char* type, int64_t head_dim, float dropout, double sgemm) {
  cpu::AttentionShape s = shape_of(head_dim);
  cpu::AttentionDropout drop{dropout, 1, 2};
  print_row<T>(
      type, s, dropout, sgemm, [&](auto... at) { cpu::attention<T>(s, drop, kOneDocument, at...); },
      [&](auto... at) { cpu::attention_grad<T>(s, drop, kOneDocument, at...); });
}

void print_tiled(const cpu::TileUnits* units, int64_t head_dim, float dropout, double sgemm) {
  if (units == nullptr) return;
  cpu::AttentionShape s = shape_of(head_dim);
  cpu::AttentionDropout drop{dropout, 1, 2};
  print_row<cpu::Bf16>(
      fmt::format("bf16 {}", units->name).c_str(), s, dropout, sgemm,
      [&](auto... at) { cpu::tiled_attention(*units, s, drop, kOneDocument, at...); },
      [&](auto... at) { cpu::tiled_attention_grad(*units, s, drop, kOneDocument, at...); });
}

}  // namespace

int main() {
  double sgemm = cpu::measure_machine().f32_flops;
  fmt::print("sgemm {:.0f} GFLOP/s\n\n", sgemm / 1e9);
  fmt::print("type                   D    H  dropout      forward GFLOP/s  sgemm     backward GFLOP/s  sgemm\n");
  for (int64_t head_dim : {32, 64, 96, 128})
    for (float dropout : {0.0f, 0.1f}) print_f32<float>("f32", head_dim, dropout, sgemm);
  print_f32<cpu::Bf16>("bf16, f32 products", 64, 0, sgemm);
  for (const cpu::TileUnits* units : {cpu::amx_units(), cpu::avx512_bf16_units()})
    for (int64_t head_dim : {64, 128})
      for (float dropout : {0.0f, 0.1f}) print_tiled(units, head_dim, dropout, sgemm);
}
