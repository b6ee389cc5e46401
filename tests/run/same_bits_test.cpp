// What must not change a single bit on the CPU: computing again what could be kept, and every pass that is marked
// exact.
#include "backend/cpu/cpu_backend.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "passes/pass.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr int64_t kSteps = 2;

// Rows of the logits are longer than a tile of any kernel, and no size is a multiple of a vector.
RunConfig config_of(Precision precision) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 3, .width = 39, .context = 11, .vocab = 2601, .dropout = 0.1};
  config.train.batch = 3;
  config.compile.precision = precision;
  return config;
}

// Activations take more than logits.
RunConfig deep_config(Precision precision) {
  RunConfig config = config_of(precision);
  config.model = {.layers = 5, .heads = 3, .width = 39, .context = 33, .vocab = 61, .dropout = 0.1};
  return config;
}

// Rows of the norms are longer than a tile.
RunConfig wide_config(Precision precision) {
  RunConfig config = config_of(precision);
  config.model = {.layers = 1, .heads = 1, .width = 1101, .context = 9, .vocab = 50};
  return config;
}

// Losses, gradient norms, and every parameter and state at the end, without padding.
using Trace = std::map<std::string, std::vector<std::byte>>;

Trace train(const RunConfig& config) {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(config, cpu::nominal_platform(), *backend);
  session.initialise();
  Trace trace;
  std::vector<double> told;
  for (int64_t step = 0; step < kSteps; ++step) {
    Batch batch = random_batch(config, uint64_t(step));
    StepResult result = session.run_step({&batch, 1}, step, 1e-2);
    told.insert(told.end(), {result.loss, result.grad_norm});
  }
  told.push_back(session.evaluate(std::vector{random_batch(config, 7)}).at(0));
  auto bytes = std::as_bytes(std::span(told));
  trace["losses and norms"].assign(bytes.begin(), bytes.end());
  for (const std::string& name : session.store().names()) {
    std::vector<std::byte>& tensor = trace[name];
    tensor.resize(size_t(num_bytes({session.store().type(name).dtype, session.store().spec(name).global})));
    session.store().read(name, tensor.data(), int64_t(tensor.size()));
  }
  return trace;
}

int64_t count_recomputed(const RunConfig& config) {
  CompiledStep step = compile_step(config, cpu::nominal_platform());
  const std::vector<Node>& nodes = step.programs[0].plan.graph.nodes();
  return std::count_if(nodes.begin(), nodes.end(), [](const Node& node) { return node.recompute; });
}

void expect_same(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, bytes] : a) EXPECT_TRUE(b.at(name) == bytes) << name;
}

class CpuSameBits : public ::testing::TestWithParam<Precision> {};

TEST_P(CpuSameBits, RecomputedOrKept) {
  RunConfig config = deep_config(GetParam());
  Trace kept = train(config);
  config.compile.memory_budget_gib = 1e-9;
  for (bool fuses : {true, false}) {
    if (!fuses) config.compile.disable_passes = {"fuse"};
    ASSERT_GT(count_recomputed(config), 2);
    expect_same(kept, train(config));
  }
}

TEST_P(CpuSameBits, RecomputedByName) {
  RunConfig config = deep_config(GetParam());
  Trace kept = train(config);
  auto bytes = [&] { return compile_step(config, cpu::nominal_platform()).intermediate_bytes(); };
  int64_t before = bytes();
  for (const char* name : {"selective", "full"}) {
    config.compile.recompute = name;
    EXPECT_LT(bytes(), before) << name;
    before = bytes();
    expect_same(kept, train(config));
  }
}

TEST_P(CpuSameBits, FusedOrNotWhereRowsAreLong) {
  RunConfig config = wide_config(GetParam());
  Trace fused = train(config);
  config.compile.disable_passes = {"fuse"};
  expect_same(fused, train(config));
}

TEST_P(CpuSameBits, WithoutAnExactPass) {
  RunConfig config = config_of(GetParam());
  Trace all = train(config);
  for (const Pass& pass : pipeline()) {
    if (pass.numerics != Numerics::kExact || pass.name == "form_groups") continue;  // without groups: by reference
    SCOPED_TRACE(pass.name);
    config.compile.disable_passes = {std::string(pass.name)};
    expect_same(all, train(config));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, CpuSameBits, ::testing::Values(Precision::kFp32, Precision::kBf16),
                         [](const auto& info) { return std::string(precision_name(info.param)); });

}  // namespace
}  // namespace tokamak
