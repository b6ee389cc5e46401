// Training steps of Llama in bf16 whose gate and up are one product (passes/join_gates.h), on meshes of every axis, in
// pipelines and where activations are computed again, against those whose gate and up are apart. The CPU has no kernel
// of the unit: its reference is run.
#include "compile/pipe_compiler.h"
#include "compile/step_compiler.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"

namespace tokamak {
namespace {

struct Setting {
  const char* name;
  MeshConfig mesh;
  int64_t micro_batches = 1;
  double budget_gib = 0;
  std::string recompute = "auto";
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

const Setting kSettings[] = {
    {"one", {}},
    {"micro_batches", {}, 2},
    {"computed_again", {}, 1, 1e-6},
    {"computed_again_by_name", {}, 1, 0, "selective"},
    {"zero3", {.data = 2, .zero = 3}},
    {"zero3_computed_again", {.data = 2, .zero = 3}, 2, 1e-6},
    {"tensor2_context2", {.data = 1, .context = 2, .tensor = 2}},
    {"tensor3", {.data = 1, .tensor = 3}},
    {"pipe2", {.pipe = 2}, 2},
    {"pipe2_tensor2_zero2", {.pipe = 2, .data = 2, .tensor = 2, .zero = 2}, 2},
};

RunConfig config_of(const Setting& setting) {
  RunConfig config = test::tiny_mesh_run();
  config.model.family = "llama";
  config.model.hidden = 12;  // 24 columns of gate and up; a rank has 32 tokens at least
  config.compile.precision = Precision::kBf16;
  config.mesh = setting.mesh;
  config.train.total_batch =
      setting.micro_batches * config.train.batch * config.model.context * std::max<int64_t>(1, setting.mesh.data);
  config.compile.memory_budget_gib = setting.budget_gib;
  config.compile.recompute = setting.recompute;
  return config;
}

// The CPU's, with a kernel for the unit.
Platform joining_platform() {
  Platform platform = cpu::nominal_platform(1);
  auto known = [real = platform.kernels](const Graph& graph, const Node& node) {
    return node.op->name.starts_with("packed_gate") || real->has_kernel(graph, node);
  };
  auto takes = [real = platform.kernels](const Graph& graph, const Node& node) {
    return real->takes_matmul(graph, node);
  };
  platform.kernels = test::fake_kernels({.takes_matmul = takes, .has_kernel = known});
  return platform;
}

// In all programs of all stages.
int count_units(const RunConfig& config) {
  std::vector<CompiledStep> stages;
  if (config.mesh.pipe > 1)
    stages = compile_pipeline(config, joining_platform()).stages;
  else
    stages.push_back(compile_step(config, joining_platform()));
  int count = 0;
  for (const CompiledStep& stage : stages)
    for (const CompiledGraph& program : stage.programs)
      count += test::count_ops(program.plan.graph, "packed_gate_grad");
  return count;
}

struct Told {
  std::vector<double> losses, norms;
};

Told train(const RunConfig& config) {
  Told told;
  auto work = [&](const MeshRanks* ranks, bool tells) {
    auto backend = cpu::make_backend();
    set_num_threads(1);
    Session session = make_session(config, joining_platform(), *backend, 0, ranks);
    session.initialise();
    for (int64_t step = 0; step < 3; ++step) {
      std::vector<Batch> batches;
      for (int64_t i = 0; i < session.micro_batches(); ++i)
        batches.push_back(test::batch_of(session.resolved(), step, i));
      StepResult result = session.run_step(batches, step, 1e-2);
      if (!tells) continue;
      told.losses.push_back(result.loss);
      told.norms.push_back(result.grad_norm);
    }
  };
  Mesh mesh = step_mesh(config.mesh);
  if (mesh.num_ranks() == 1) {
    work(nullptr, true);
    return told;
  }
  run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
    MeshRanks ranks(mesh, world);
    work(&ranks, leads(&ranks));
  });
  return told;
}

class JoinedGates : public testing::TestWithParam<Setting> {};

TEST_P(JoinedGates, TrainAsThoseApart) {
  RunConfig config = config_of(GetParam());
  EXPECT_GT(count_units(config), 0);
  Told joined = train(config);
  config.compile.disable_passes = {"join_gates"};
  EXPECT_EQ(count_units(config), 0);
  Told apart = train(config);
  ASSERT_EQ(joined.losses.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(joined.losses[i], apart.losses[i], 2e-3) << i;
    EXPECT_NEAR(joined.norms[i], apart.norms[i], 1e-2 * apart.norms[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, JoinedGates, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tokamak
