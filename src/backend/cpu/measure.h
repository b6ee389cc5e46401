// What this machine reaches, measured now: the yardstick of reports and predictions. Nothing is remembered.
// Tests: tests/backend/cpu/measure_test.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace tokamak::cpu {

struct MachinePeaks {
  std::string cpu;  // as the system names it
  int threads = 1;  // that parallel loops use; the rates below are those of all together
  bool has_avx512_bf16 = false;
  bool has_amx = false;             // bf16 tiles
  int64_t cache_bytes = 0;          // last-level cache; 0: unknown
  double f32_flops = 0;             // FLOP/s of Matmul at a shape like GPT-2's layers
  double bf16_flops = 0;            // the same from bf16 operands; 0: this CPU has no such matmul
  double bf16_attention_flops = 0;  // of attention with products of bf16, forward and backward; 0: it has none
  double memory_bandwidth = 0;      // bytes/s of a = b + s * c far beyond the cache: two reads and a write
};

/// Takes about half a second, and 200 to 400 MB or half of the free memory. Other work on the machine makes all rates
/// smaller.
MachinePeaks measure_machine();

/// Bytes of each of the three arrays that the memory is measured with: beyond the cache, but half of the free memory
/// together. 0 stands for what is unknown.
int64_t triad_array_bytes(int64_t cache_bytes, int64_t free_bytes);

/// FLOP/s of one product of the shape (m, k) x (k, n), best run within `seconds`; 0 where bf16 is not known.
double measure_matmul(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool bf16, double seconds);

/// FLOP/s of both passes of GPT-2's attention with products of bf16, 4 samples of 1024 positions; 0 where the CPU has
/// no units for them (backend/cpu/bf16_tiles.h).
double measure_bf16_attention(double seconds);

/// The best time of `run` in seconds: called once to warm up, then once or more, and for `seconds`.
template <typename F>
double best_seconds(double seconds, const F& run) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  run();
  double best = 1e30;
  for (Clock::time_point first = Clock::now(); best == 1e30 || since(first) < seconds;) {
    Clock::time_point start = Clock::now();
    run();
    best = std::min(best, std::max(since(start), 1e-9));
  }
  return best;
}

}  // namespace tokamak::cpu
