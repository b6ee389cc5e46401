#include "backend/cpu/measure.h"

#include "backend/cpu/matmul.h"
#include "backend/cpu/simd.h"
#include "backend/cpu/tiled_attention.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/system.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

namespace tokamak::cpu {
namespace {

// The value of the first line of /proc/cpuinfo with this key; empty where the file or the key is missing.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key) && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "";
}

bool has_flag(const std::string& flags, const std::string& flag) {
  return (" " + flags + " ").find(" " + flag + " ") != std::string::npos;
}

double measure_bandwidth(int64_t array_bytes, double seconds) {
  constexpr int64_t kPiece = 4096;
  int64_t n = array_bytes / int64_t(sizeof(float)) / kPiece * kPiece;
  // Not value-initialised here: the threads that use the pages touch them first.
  auto a = std::make_unique_for_overwrite<float[]>(size_t(n)), b = std::make_unique_for_overwrite<float[]>(size_t(n)),
       c = std::make_unique_for_overwrite<float[]>(size_t(n));
  parallel_for(n, kPiece, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) a[size_t(i)] = 0, b[size_t(i)] = 1, c[size_t(i)] = 2;
  });
  double best = best_seconds(seconds, [&] {
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i += kLanes)
        store(&a[size_t(i)], load(&b[size_t(i)]) + 3.0f * load(&c[size_t(i)]));
    });
  });
  TOKAMAK_CHECK(a[size_t(n) - 1] == 7, "the triad computed {}", a[size_t(n) - 1]);
  return 3.0 * double(n) * sizeof(float) / best;
}

// A product on memory of its own.
class MeasuredProduct {
 public:
  // Throws UserError where the CPU has no kernel of the type.
  MeasuredProduct(const MatmulShape& s, bool bf16)
      : matmul_(s, options(bf16)), a_(size_t(s.m * s.k)), b_(size_t(s.k * s.n)), c_(size_t(s.m * s.n)),
        workspace_(matmul_.workspace_bytes() / 4 + 16), flops_(2.0 * double(s.m) * double(s.n) * double(s.k)) {}

  void run() { matmul_.run(a_.data(), b_.data(), c_.data(), workspace_.data()); }
  double flops() const { return flops_; }

 private:
  static MatmulOptions options(bool bf16) {
    DType dtype = bf16 ? DType::kBF16 : DType::kF32;
    return {.a = dtype, .b = dtype, .output = dtype};
  }

  Matmul matmul_;
  // Zeros as f32 or bf16 alike; matrix units take the same time for every finite number.
  std::vector<float> a_, b_, c_, workspace_;
  double flops_;
};

// Of the three products of GPT-2's widest layer, one after the other as in a step, with 4096 tokens: forward, and the
// gradients of its input and of its weight. Of slow ones the first is enough: they would take seconds.
double measure_bf16_layer(double seconds) {
  constexpr int64_t kTokens = 4096, kInputs = 768, kOutputs = 3072;
  constexpr double kSlow = 300e9;
  double forward = measure_matmul(kTokens, kOutputs, kInputs, false, false, true, 0);
  if (forward < kSlow) return forward;
  MeasuredProduct output({.m = kTokens, .n = kOutputs, .k = kInputs}, true);
  MeasuredProduct input({.m = kTokens, .n = kInputs, .k = kOutputs, .trans_b = true}, true);
  MeasuredProduct weight({.m = kInputs, .n = kOutputs, .k = kTokens, .trans_a = true}, true);
  double best = best_seconds(seconds, [&] {
    for (MeasuredProduct* product : {&output, &input, &weight}) product->run();
  });
  return 3 * output.flops() / best;
}

}  // namespace

int64_t triad_array_bytes(int64_t cache_bytes, int64_t free_bytes) {
  // A virtual machine may report its host's cache, hundreds of megabytes of which its cores have a small part.
  int64_t wanted = std::clamp<int64_t>(2 * cache_bytes, 64 << 20, 128 << 20);
  return free_bytes > 0 ? std::clamp<int64_t>(free_bytes / 6, 1 << 20, wanted) : wanted;
}

double measure_matmul(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, bool bf16, double seconds) {
  try {
    MeasuredProduct product({.m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b}, bf16);
    return product.flops() / best_seconds(seconds, [&] { product.run(); });
  } catch (const UserError&) {  // no kernel of this type for this CPU: that is the answer
    return 0;
  }
}

double measure_bf16_attention(double seconds) {
  const TileUnits* units = tile_units();
  if (units == nullptr) return 0;
  AttentionShape s{4, 1024, 12, 64, true, 0.125f};
  auto elements = size_t(s.batch * s.time * s.width());
  std::vector<Bf16> qkv(3 * elements), out(elements), dqkv(3 * elements);
  std::vector<float> lse(size_t(s.batch * s.heads * s.time)),
      workspace(std::max(tiled_attention_workspace_bytes(s, num_threads()),
                         tiled_attention_grad_workspace_bytes(s, num_threads())) /
                    4 +
                16);
  double best = best_seconds(seconds, [&] {
    tiled_attention(*units, s, {}, nullptr, qkv.data(), out.data(), lse.data(), workspace.data());
    tiled_attention_grad(*units, s, {}, nullptr, qkv.data(), out.data(), lse.data(), out.data(), dqkv.data(),
                         workspace.data());
  });
  constexpr double kProducts = 2 + 5;  // forward, backward; of half of the T x T pairs each
  return kProducts * double(s.batch * s.heads * s.time * s.time * s.head_dim) / best;
}

MachinePeaks measure_machine() {
  MachinePeaks peaks;
  std::string flags = cpuinfo("flags");
  peaks.cpu = cpuinfo("model name");
  peaks.threads = num_threads();
  peaks.has_avx512_bf16 = has_flag(flags, "avx512_bf16");
  peaks.has_amx = has_flag(flags, "amx_bf16");
  peaks.cache_bytes = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  peaks.f32_flops = measure_matmul(1024, 2304, 768, false, true, false, 0.15);
  peaks.bf16_flops = measure_bf16_layer(0.15);
  peaks.bf16_attention_flops = measure_bf16_attention(0.03);
  peaks.memory_bandwidth = measure_bandwidth(triad_array_bytes(peaks.cache_bytes, available_memory()), 0.15);
  return peaks;
}

}  // namespace tokamak::cpu
