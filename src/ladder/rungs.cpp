#include "ladder/rungs.h"

#include "base/error.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "config/json.h"
#include "model/model.h"

#include <bit>

namespace tokamak {
namespace {

// Kept free of the plan: kernels, libraries and what other programs take meanwhile.
constexpr double kUsableShare = 0.9;

void disable(RunConfig& config, std::initializer_list<const char*> passes) {
  config.compile.disable_passes.insert(config.compile.disable_passes.end(), passes.begin(), passes.end());
}

void enable(RunConfig& config, std::string_view pass) { std::erase(config.compile.disable_passes, pass); }

void switch_off(RunConfig& config, int64_t) {
  CompileConfig& c = config.compile;
  c.precision = Precision::kFp32;
  c.low_residual = c.cuda_graph = false;
  c.memory_budget_gib = 0;
  disable(config, {"fuse", "flash_attention", "pad_vocab", "fused_optimizer", "chunked_classifier"});
}

void switch_off_cpu(RunConfig& config, int64_t) {
  CompileConfig& c = config.compile;
  c.precision = Precision::kFp32;
  c.cuda_graph = c.async = false;
  c.memory_budget_gib = 0;
  disable(config, {"fuse", "flash_attention", "pad_vocab", "fused_optimizer"});
}

void fuse(RunConfig& c, int64_t) { enable(c, "fuse"); }
void flash_attention(RunConfig& c, int64_t) { enable(c, "flash_attention"); }
void pad_vocab(RunConfig& c, int64_t) { enable(c, "pad_vocab"); }
void fused_optimizer(RunConfig& c, int64_t) { enable(c, "fused_optimizer"); }
void no_host_sync(RunConfig& c, int64_t) { c.compile.async = true; }
void low_residual(RunConfig& c, int64_t) { c.compile.low_residual = true; }
void cuda_graph(RunConfig& c, int64_t) { c.compile.cuda_graph = true; }
void chunked_classifier(RunConfig& c, int64_t) { enable(c, "chunked_classifier"); }
void tf32(RunConfig& c, int64_t) { c.compile.precision = Precision::kTf32; }
void bf16(RunConfig& c, int64_t) { c.compile.precision = Precision::kBf16; }
void fp16(RunConfig& c, int64_t) { c.compile.precision = Precision::kFp16; }

void fp8(RunConfig& c, int64_t) { c.compile.precision = Precision::kFp8; }

void halve_memory(RunConfig& c, int64_t arena_bytes) {
  c.compile.memory_budget_gib = double(arena_bytes) / 2 / double(int64_t(1) << 30);
}

void accumulate(RunConfig& c, int64_t) { c.train.total_batch = 4 * c.step_tokens(); }

void any_order(RunConfig& c, int64_t) { c.compile.deterministic = false; }
void untie_weights(RunConfig& c, int64_t) { c.model.tie_weights = false; }

constexpr Rung kCpuRungs[] = {
    {"fp32, op by op", switch_off_cpu}, {"+ compile (fused groups)", fuse}, {"+ flash attention", flash_attention},
    {"+ padded vocabulary", pad_vocab}, {"+ BF16 autocast", bf16},          {"+ fused optimizer", fused_optimizer},
    {"+ no host sync", no_host_sync},
};

constexpr Rung kGpuRungs[] = {
    {"fp32, op by op", switch_off},
    {"+ TF32", tf32},
    {"+ BF16 autocast", bf16},
    {"+ padded vocabulary", pad_vocab},
    {"+ compile (fused groups)", fuse},
    {"+ flash attention", flash_attention},
    {"+ fused optimizer", fused_optimizer},
    {"+ BF16 residual stream", low_residual},
    {"+ CUDA graph", cuda_graph},
    {"+ chunked classifier", chunked_classifier},
    {"FP16 + loss scaling", fp16, true},
    {"recompute (memory budget)", halve_memory, true},
    {"accumulation x4", accumulate, true},
    {"weight tying off", untie_weights, true},
    {"sums in any order", any_order, true},
    {"FP8 products", fp8, true},  // the last one: gpu_rungs()
};

bool divides_total_batch(const RunConfig& config) {
  return config.train.total_batch % (config.train.batch * config.model.context) == 0;
}

}  // namespace

bool applies(const Rung& rung, const RunConfig& config, int64_t arena_bytes) {
  if (!rung.optional) return true;
  RunConfig trial = config;
  rung.switch_on(trial, arena_bytes);
  if (to_json(trial) == to_json(config)) return false;
  try {
    count_parameters(trial.model);
  } catch (const UserError&) {
    return false;
  }
  return true;
}

std::span<const Rung> cpu_rungs() { return kCpuRungs; }
std::span<const Rung> gpu_rungs(bool float8) { return std::span(kGpuRungs).first(std::size(kGpuRungs) - !float8); }

int64_t choose_batch(RunConfig config, const Platform& platform, const Rung& rung, int64_t free_bytes, int64_t most) {
  rung.switch_on(config, 0);
  for (auto batch = int64_t(std::bit_floor(uint64_t(most))); batch > 1; batch /= 2) {
    config.train.batch = batch;
    if (!divides_total_batch(config)) continue;
    if (free_bytes <= 0) return batch;
    CompiledStep step = compile_step(resolve(config, platform.target), platform);
    if (double(step.total_bytes()) <= double(free_bytes) * kUsableShare) return batch;
  }
  return 1;
}

}  // namespace tokamak
