// Ten AdamW steps of whole models on meshes of ranks that are threads, against PyTorch.
#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "passes/step_mesh.h"
#include "tests/model/golden_steps.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

struct GoldenMesh {
  const char* name;
  MeshConfig mesh;
  int64_t micro_batches = 1;
};

const GoldenMesh kMeshes[] = {
    {"data2", {.data = 2}},
    {"data2_plain_sums", {.data = 2, .slots = 1}},
    {"zero1", {.data = 2, .zero = 1}},
    {"zero2", {.data = 2, .zero = 2}},
    {"zero3", {.data = 2, .zero = 3}},
    {"tensor2", {.data = 1, .tensor = 2}},
    {"tensor2_without_sequence", {.data = 1, .tensor = 2, .sequence = false}},
    {"context2", {.data = 1, .context = 2}},
    {"data2_tensor2", {.data = 2, .tensor = 2}},
    {"data2_context2_zero3", {.data = 2, .context = 2, .zero = 3}},
    {"context2_tensor2_micro2", {.data = 1, .context = 2, .tensor = 2}, 2},
    {"data2_context2_tensor2", {.data = 2, .context = 2, .tensor = 2}},
    {"pipe2_micro2", {.pipe = 2, .data = 1}, 2},
    {"pipe2_data2_tensor2_zero1_micro2", {.pipe = 2, .data = 2, .tensor = 2, .zero = 1}, 2},
    {"data2_context2_tensor2_zero3", {.data = 2, .context = 2, .tensor = 2, .zero = 3}},
};

using Parameters = std::tuple<const char*, GoldenMesh>;

std::string name_of(const testing::TestParamInfo<Parameters>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param).name);
}

class GoldenOnMesh : public testing::TestWithParam<Parameters> {};

TEST_P(GoldenOnMesh, TakesTenSteps) {
  const auto& [golden_name, tried] = GetParam();
  RunConfig config;
  config.compile.precision = Precision::kFp32;
  config.mesh = tried.mesh;
  Mesh mesh = step_mesh(config.mesh);
  run_ranks(int(mesh.num_ranks()), [&, name = golden_name](Communicator& world) {
    Golden golden(name);
    RunConfig mine = config;
    mine.model = golden.model();
    mine.optimizer = golden.optimizer();
    mine.train.batch = golden.batch() / tried.micro_batches;
    if (tried.micro_batches > 1) mine.train.total_batch = golden.batch() * golden.model().context;
    MeshRanks ranks(mesh, world);
    auto backend = cpu::make_backend();
    set_num_threads(1);  // ranks share the cores
    Session session = make_session(mine, cpu::nominal_platform(1), *backend, 0, &ranks);
    take_golden_steps(session, golden, kFloatSteps, &ranks);
  });
}

INSTANTIATE_TEST_SUITE_P(All, GoldenOnMesh, testing::Combine(testing::ValuesIn(kGoldens), testing::ValuesIn(kMeshes)),
                         name_of);

}  // namespace
}  // namespace tokamak::test
