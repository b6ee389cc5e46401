#include "backend/cuda/gradient_matmul.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak::test {
namespace {

struct Sizes {
  int64_t m, n, k;
};

struct Form {
  bool left;  // whether it is a's sums that run from row to row, not b's
  DType a, b, output;
  bool adds;
};
constexpr DType kE4 = DType::kF8E4M3, kE5 = DType::kF8E5M2;
constexpr Form kForms[] = {{true, kE5, kE4, DType::kF32, false},
                           {true, kE5, kE4, DType::kF32, true},
                           {true, kE4, kE5, DType::kBF16, false},
                           {false, kE4, kE5, DType::kBF16, false},
                           {false, kE4, kE4, DType::kF32, true}};

Graph graph_of(const Form& form, const Sizes& s) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueTypes types{{form.a, form.left ? Shape{s.k, s.m} : Shape{s.m, s.k}},
                   {form.b, form.left ? Shape{s.n, s.k} : Shape{s.k, s.n}},
                   {DType::kF32, {}},
                   {DType::kF32, {}}};
  if (form.adds) types.push_back({form.output, {s.m, s.n}});
  MatmulForm matmul;
  matmul.trans_a = matmul.trans_b = form.left;
  matmul.scale_a = 2, matmul.scale_b = 3;
  matmul.formats = {format_of(form.a), format_of(form.b), DType::kF32, form.output};
  matmul.output = form.output;
  matmul.addend = form.adds ? 4 : -1;
  ValueIds inputs;
  for (const ValueType& type : types)
    inputs.push_back(g.input(fmt::format("x{}{}", inputs.size(), type.shape.empty() ? "_positive" : ""), type));
  graph.add_result("y", g.add(op::fused_matmul, inputs, {}, make_body(matmul, types))[0]);
  return graph;
}

cuda::MatmulNode node_of(const Graph& graph) { return cuda::matmul_node(graph, graph.nodes()[0]); }

TEST(GradientMatmul, SaysWhatItKnows) {
  for (const Form& form : kForms)
    for (cuda::Architecture a : all_architectures())
      EXPECT_EQ(gradient_supports(node_of(graph_of(form, {32, 48, 64})), a), a.major == 9);
  for (Sizes odd : {Sizes{40, 48, 64}, {32, 40, 64}, {32, 48, 72}})
    EXPECT_FALSE(gradient_supports(node_of(graph_of(kForms[0], odd)), {9, 0}));
}

// Gradients of few weights and many rows are cut; those of a table of many words are not.
TEST(GradientMatmul, CutsWhatLeavesMultiprocessorsIdle) {
  auto parts = [](Sizes s) { return gradient_parts(node_of(graph_of(kForms[0], s)).problem, 132); };
  EXPECT_EQ(parts({50304, 768, 16384}), 1);
  EXPECT_GT(parts({3072, 768, 65536}), 4);
  EXPECT_EQ(parts({3072, 768, 128}), 1);
  EXPECT_LE(gradient_scratch_bytes(node_of(graph_of(kForms[0], {8192, 2048, 1 << 20})).problem, 132), 128 << 20);
}

TEST(GradientMatmul, Compiles) {
  for (const Form& form : {kForms[1], kForms[3]})
    for (int64_t parts : {1, 3})
      if (parts == 1 || form.adds)
        expect_compiles(gradient_matmul_source(node_of(graph_of(form, {32, 48, 64})).problem, parts),
                        {"multiply_gradient", "add_parts"}, one_architecture());
}

// The tensor cores keep some 14 bits of a sum of 128 terms.
constexpr Tolerance kSums{1e-3, 4e-3};

// Less than a tile, parts of tiles, more tiles than blocks, sums in parts.
TEST(GpuGradientMatmul, EqualsInterpreter) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (const Form& form : kForms)
    for (Sizes s : {Sizes{16, 16, 16}, {256, 128, 128}, {304, 400, 272}, {2608, 1600, 32}, {272, 144, 4112}}) {
      Graph graph = graph_of(form, s);
      SCOPED_TRACE(fmt::format("{} {}x{}x{}", node_of(graph).problem.key(), s.m, s.n, s.k));
      expect_matches_interpreter(graph, random_arguments(graph), form.output == DType::kF32 ? kSums : kBf16Tolerance);
    }
}

// One term, and many that are each too small beside it for the tensor cores: of the 128 terms with it they are lost.
TEST(GpuGradientMatmul, KeepsWhatIsSmall) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  Graph graph = graph_of(kForms[0], {16, 16, 8192});
  std::vector<HostTensor> arguments = random_arguments(graph);
  for (int64_t i = 0; i < arguments[0].size(); ++i) arguments[0][i] = i < 16 ? 1 : 0x1p-14;
  for (double& v : arguments[1].data) v = 1;
  expect_matches_interpreter(graph, arguments, {1e-2, 1e-2});
}

TEST(GpuGradientMatmul, GivesTheSameBitsEveryTime) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  Graph graph = graph_of(kForms[0], {272, 144, 4112});
  expect_deterministic(graph, random_arguments(graph));
}

}  // namespace
}  // namespace tokamak::test
