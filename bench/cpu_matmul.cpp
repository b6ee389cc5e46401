// GFLOP/s of Matmul at GPT-2 124M's shapes (4096 tokens), every layout of the training step, and the machine's peaks.
#include "backend/cpu/matmul.h"
#include "backend/cpu/measure.h"

#include <fmt/core.h>

using namespace tokamak;

namespace {

struct Row {
  const char* name;
  int64_t m, n, k;
  bool trans_a, trans_b;
};

constexpr int64_t kTokens = 4096, kWidth = 768, kVocab = 50304;

constexpr Row kRows[] = {
    {"qkv forward", kTokens, 3 * kWidth, kWidth, false, false},
    {"qkv input gradient", kTokens, kWidth, 3 * kWidth, false, true},
    {"qkv weight gradient", kWidth, 3 * kWidth, kTokens, true, false},
    {"projection forward", kTokens, kWidth, kWidth, false, false},
    {"projection input gradient", kTokens, kWidth, kWidth, false, true},
    {"projection weight gradient", kWidth, kWidth, kTokens, true, false},
    {"mlp up forward", kTokens, 4 * kWidth, kWidth, false, false},
    {"mlp up input gradient", kTokens, kWidth, 4 * kWidth, false, true},
    {"mlp up weight gradient", kWidth, 4 * kWidth, kTokens, true, false},
    {"mlp down forward", kTokens, kWidth, 4 * kWidth, false, false},
    {"mlp down input gradient", kTokens, 4 * kWidth, kWidth, false, true},
    {"mlp down weight gradient", 4 * kWidth, kWidth, kTokens, true, false},
    {"logits", kTokens, kVocab, kWidth, false, true},
    {"logits input gradient", kTokens, kWidth, kVocab, false, false},
    {"logits weight gradient", kVocab, kWidth, kTokens, true, false},
};

}  // namespace

int main() {
  cpu::MachinePeaks peaks = cpu::measure_machine();
  fmt::print("{}, {} threads, avx512_bf16 {}, amx {}\nsgemm {:.0f} GFLOP/s, bf16 {:.0f} GFLOP/s, memory {:.1f} GB/s\n",
             peaks.cpu, peaks.threads, peaks.has_avx512_bf16, peaks.has_amx, peaks.f32_flops / 1e9,
             peaks.bf16_flops / 1e9, peaks.memory_bandwidth / 1e9);
  fmt::print("\n{:<28}{:>7}{:>7}{:>7}  op  {:>8}{:>8}  GFLOP/s\n", "product", "m", "n", "k", "f32", "bf16");
  for (const Row& r : kRows) {
    auto rate = [&](bool bf16) { return cpu::measure_matmul(r.m, r.n, r.k, r.trans_a, r.trans_b, bf16, 0.3) / 1e9; };
    double f32 = rate(false), bf16 = rate(true);
    fmt::print("{:<28}{:>7}{:>7}{:>7}  {}{}  {:>8.0f}{:>8.0f}\n", r.name, r.m, r.n, r.k, r.trans_a ? 'T' : 'N',
               r.trans_b ? 'T' : 'N', f32, bf16);
  }
}
