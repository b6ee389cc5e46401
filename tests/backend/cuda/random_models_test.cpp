// Hundreds of models of random sizes through the compiler, the planner and the writer of device code, for a GPU that is
// not there.
#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/cuda_backend.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "config/validate.h"
#include "ops/group_form.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/support/resolve_first.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

namespace tokamak::cuda {
namespace {

constexpr uint32_t kModels = 200;
constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16};

class RandomConfig {
 public:
  explicit RandomConfig(uint32_t seed) : random_(seed) {}

  RunConfig make() {
    RunConfig c;
    int64_t head_dim = one_of({1, 5, 8, 16, 24, 48, 64, 80, 96, 128, 256});
    c.model.layers = 1;
    c.model.heads = between(1, std::max<int64_t>(9000 / head_dim, 1));
    c.model.width = c.model.heads * head_dim;
    c.model.context = coin() ? 128 * between(1, 16) : between(1, 2048);
    c.model.vocab = between(1, 60000);
    c.model.bias = coin(), c.model.tie_weights = coin();
    c.model.dropout = coin() ? 0.1 : 0.0;
    c.data.mask_documents = coin();
    c.train.batch = between(1, 8);
    c.train.total_batch = coin() ? 0 : 2 * c.train.batch * c.model.context;
    c.compile.precision = kPrecisions[between(0, 3)];
    c.compile.low_residual = coin();
    c.compile.streams = between(1, 2);
    c.compile.memory_budget_gib = coin() ? 0.0 : 0.01;
    c.optimizer.name = coin() ? "adamw" : "sgd";
    for (const char* pass : {"flash_attention", "fuse", "pad_vocab", "chunked_classifier"})
      if (between(0, 7) == 0) c.compile.disable_passes.emplace_back(pass);
    return c;
  }

 private:
  int64_t between(int64_t least, int64_t most) { return std::uniform_int_distribution(least, most)(random_); }
  bool coin() { return between(0, 1) == 1; }
  int64_t one_of(std::initializer_list<int64_t> list) { return list.begin()[between(0, int64_t(list.size()) - 1)]; }

  std::mt19937 random_;
};

std::string describe(const RunConfig& c) {
  return fmt::format("width {} heads {} context {} vocab {} batch {} {}", c.model.width, c.model.heads, c.model.context,
                     c.model.vocab, c.train.batch, precision_name(c.compile.precision));
}

// Every launch that the groups of the step's programs come to is one that a device takes.
void expect_launches(const CompiledStep& step) {
  for (const CompiledGraph& program : step.programs)
    for (const Node& node : program.plan.graph.nodes()) {
      if (!is_matrix_group(node)) continue;
      for (const GroupLaunch& launch : generate_group(node).launches) {
        EXPECT_LE(launch.threads_x * launch.threads_y, 1024);
        EXPECT_GE(launch.blocks_x * launch.blocks_y, 1);
        EXPECT_LE(launch.blocks_x, INT32_MAX);
      }
    }
}

TEST(RandomModels, CompileForAGpu) {
  Platform platform = nominal_platform();
  for (uint32_t seed = 0; seed < kModels; ++seed) {
    RunConfig config = RandomConfig(seed).make();
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, describe(config)));
    ASSERT_NO_THROW(validate(config));
    ASSERT_NO_THROW(expect_launches(compile_step(config, platform)));
  }
}

// Sums over rows of every width up to the widest that is fused: a row never needs more than a block.
TEST(RandomModels, OfEveryWidthCompileForAGpu) {
  Platform platform = nominal_platform();
  for (int64_t width = 1000; width <= 8200; width += width % 7 == 0 ? 2 : 191)
    for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
      RunConfig config;
      config.model.layers = config.model.heads = 1;
      config.model.width = width;
      config.model.context = 64;
      config.compile.precision = precision;
      SCOPED_TRACE(describe(config));
      ASSERT_NO_THROW(expect_launches(compile_step(config, platform)));
    }
}

// The texts for widths that no power of two divides well.
TEST(RandomModels, DeviceCodeOfOddWidthsCompiles) {
  for (auto [width, precision] : {std::pair(5120, Precision::kFp32), std::pair(2050, Precision::kBf16)}) {
    RunConfig config;
    config.model.layers = config.model.heads = 1;
    config.model.width = width;
    config.model.context = 64;
    config.compile.precision = precision;
    CompiledStep step = compile_step(config, nominal_platform());
    for (const Node& node : step.programs[0].plan.graph.nodes()) {
      if (!is_matrix_group(node)) continue;
      GroupCode code = generate_group(node);
      if (code.source.find("combine_partials") == code.source.npos) continue;
      EXPECT_NO_THROW(compile_device_code(code.source, {9, 0})) << width;
    }
  }
}

}  // namespace
}  // namespace tokamak::cuda
