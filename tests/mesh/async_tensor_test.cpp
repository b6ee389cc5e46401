// Training steps whose products begin with a rank's own rows (mesh.async_tensor), on meshes with other axes, in
// pipelines, with accumulation and where activations are computed again, against the same without.
#include "compile/pipe_compiler.h"
#include "compile/step_compiler.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/graph_text.h"

namespace tokamak {
namespace {

struct Setting {
  const char* name;
  MeshConfig mesh;
  const char* family = "gpt2";
  Precision precision = Precision::kFp32;
  int64_t micro_batches = 1;
  const char* recompute = "auto";
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

const Setting kSettings[] = {
    {"tensor2", {.tensor = 2}},
    {"tensor4", {.tensor = 4}},
    {"tensor2_bf16", {.tensor = 2}, "gpt2", Precision::kBf16},
    {"tensor2_fp8", {.tensor = 2}, "gpt2", Precision::kFp8},
    {"tensor2_computed_again", {.tensor = 2}, "gpt2", Precision::kFp32, 1, "full"},
    {"data2_tensor2_zero3", {.data = 2, .tensor = 2, .zero = 3}, "gpt2", Precision::kFp32, 2},
    {"llama", {.tensor = 2}, "llama", Precision::kBf16},
    {"modern", {.tensor = 2}, "modern", Precision::kBf16, 2},
    {"context2_tensor2", {.context = 2, .tensor = 2}},
    {"pipe2_tensor2", {.pipe = 2, .tensor = 2}, "gpt2", Precision::kFp32, 2},
};

RunConfig config_of(const Setting& setting, bool async) {
  RunConfig config = test::tiny_mesh_run();
  config.model.family = setting.family;
  config.train.batch = 32;
  config.compile.precision = setting.precision;
  config.compile.recompute = setting.recompute;
  config.mesh = setting.mesh;
  config.mesh.data = std::max<int64_t>(1, config.mesh.data);
  config.mesh.slots = 1;
  config.mesh.async_tensor = async;
  config.train.total_batch = setting.micro_batches * config.train.batch * config.model.context;
  return config;
}

// A CPU that counts as a device on which products run beside collectives, and whose launches take no time.
Platform platform_of(const RunConfig& config) {
  Platform platform = test::mesh_platform(config);
  platform.target.streams = 2;
  platform.target.launch_seconds = 0;
  return platform;
}

// In all programs of all stages.
int count_blocks(const RunConfig& config, Platform platform) {
  std::vector<CompiledStep> stages;
  if (config.mesh.pipe > 1)
    stages = compile_pipeline(config, platform).stages;
  else
    stages.push_back(compile_step(config, platform));
  int count = 0;
  for (const CompiledStep& stage : stages)
    for (const CompiledGraph& program : stage.programs) count += test::count_ops(program.plan.graph, "row_block");
  return count;
}

test::Outcome train(const RunConfig& config) {
  Mesh mesh = step_mesh(config.mesh);
  test::Outcome outcome;
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    test::Outcome got = test::train_steps(config, &ranks, platform_of(config));
    if (ranks.rank() == 0) outcome = std::move(got);
  });
  return outcome;
}

class AsyncTensor : public testing::TestWithParam<Setting> {};

TEST_P(AsyncTensor, TrainsAsWithWholeProducts) {
  RunConfig whole = config_of(GetParam(), false), async = config_of(GetParam(), true);
  EXPECT_EQ(count_blocks(whole, platform_of(whole)), 0);
  EXPECT_GE(count_blocks(async, platform_of(async)), 4 * async.mesh.tensor);
  Platform slow = platform_of(async);
  slow.target.launch_seconds = 1;
  EXPECT_EQ(count_blocks(async, slow), 0) << "a block takes less time than its launch";
  test::expect_close(train(whole), train(async), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Meshes, AsyncTensor, testing::ValuesIn(kSettings),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokamak
