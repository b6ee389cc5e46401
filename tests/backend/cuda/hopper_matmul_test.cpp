// The own matmuls with GELU and with its derivative, against the interpreter, and in full size against their parts.
#include "backend/cuda/hopper_matmul.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/pointwise.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/backend/cuda/matmul_forms.h"
#include "tests/support/random_tensors.h"

#include <tuple>

namespace tokamak::test {
namespace {

constexpr MatmulForm kForms[] = {MatmulForm::kBiasGeluAux, MatmulForm::kGeluGrad, MatmulForm::kGeluGradSums,
                                 MatmulForm::kBiasReluSquaredAux, MatmulForm::kGateSums};

cuda::MatmulNode node_of(const Graph& graph) { return cuda::matmul_node(graph, graph.nodes()[0]); }
cuda::MatmulNode node_of(const MatmulCase& c) { return node_of(matmul_graph(c)); }

bool is_supported(const MatmulCase& c) { return hopper_supports(node_of(c), {9, 0}); }

TEST(HopperMatmul, SaysWhatItSupports) {
  for (MatmulForm form : kForms) {
    MatmulCase c{form, DType::kBF16, 1, 40, 72, 264};
    for (cuda::Architecture a : all_architectures()) EXPECT_EQ(hopper_supports(node_of(c), a), a.major == 9);
    for (bool transposed : {false, true})
      EXPECT_TRUE(is_supported({form, DType::kF16, 1, 33, 56, 8, false, transposed}));
    EXPECT_FALSE(is_supported({form, DType::kF32, 1, 40, 72, 264}));
    EXPECT_FALSE(is_supported({form, DType::kBF16, 1, 40, 72, 264, true}));
    EXPECT_FALSE(is_supported({form, DType::kBF16, 1, 40, 68, 264})) << "rows of 8-byte multiples";
    EXPECT_FALSE(is_supported({form, DType::kBF16, 1, 40, 72, 260}));
  }
  EXPECT_FALSE(is_supported({MatmulForm::kGeluGrad, DType::kBF16, 3, 40, 72, 264}));
  for (MatmulForm form : {MatmulForm::kBias, MatmulForm::kBiasGelu})
    EXPECT_FALSE(is_supported({form, DType::kBF16, 1, 40, 72, 264}));
}

// Recomputation gives the same bits only with these; cuBLASLt's are other ones.
TEST(HopperMatmul, GeluIsLeftToItsOwnKernelElsewhere) {
  for (MatmulForm form : kForms)
    for (int major : {8, 9, 10})
      for (int64_t rows : {1, 128}) {
        Graph graph = matmul_graph({form, DType::kBF16, 1, rows, 72, 264});
        cuda::DeviceInfo info{.name = "GPU", .major = major, .minor = 0, .multiprocessors = 132, .versions = {}};
        bool own = major == 9 && rows >= 128;
        EXPECT_EQ(cuda::takes_matmul(info, graph, graph.nodes()[0]), own || form == MatmulForm::kGeluGrad) << major;
      }
}

// By hand: a row for each 32 rows of whole clusters.
TEST(HopperMatmul, ScratchMemoryIsThatOfSums) {
  EXPECT_EQ(hopper_scratch_bytes(node_of({MatmulForm::kGeluGradSums, DType::kBF16, 1, 257, 72, 264})), 16 * 72 * 4);
  EXPECT_EQ(hopper_scratch_bytes(node_of({MatmulForm::kGeluGrad, DType::kBF16, 1, 257, 72, 264})), 0);
}

// A type and a layout at a time: neither is decided by the other.
TEST(HopperMatmul, Compiles) {
  for (MatmulForm form : kForms)
    for (auto [dtype, transposed] : {std::pair{DType::kBF16, false}, {DType::kF16, true}})
      expect_compiles(hopper_matmul_source(node_of({form, dtype, 1, 40, 72, 264, false, transposed})),
                      {"matmul", "sum_rows"}, one_architecture());
}

// Less than a tile, parts of tiles in all directions, more tiles than blocks.
TEST(GpuHopperMatmul, EqualsInterpreter) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (MatmulForm form : kForms)
    for (DType dtype : {DType::kBF16, DType::kF16})
      for (auto [m, n, k] : {std::tuple{1, 8, 8}, {33, 56, 72}, {128, 192, 64}, {300, 400, 264}, {2600, 1600, 16}})
        for (bool transposed : {false, true}) {
          Graph graph = matmul_graph({form, dtype, 1, m, n, k, false, transposed});
          expect_matches_interpreter(graph, random_arguments(graph), tolerance_of(dtype));
        }
}

// Small, for compute-sanitizer (bench/gpu.sh sanitize).
TEST(GpuSanitized, HopperMatmul) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (MatmulForm form : kForms) {
    Graph graph = matmul_graph({form, DType::kBF16, 1, 300, 200, 72, false, form != MatmulForm::kBiasGeluAux});
    expect_matches_interpreter(graph, random_arguments(graph), kBf16Tolerance);
  }
}

Graph single_group(const OpDef& op, const Graph& around, const ValueIds& inputs,
                   const std::function<ValueId(GraphBuilder&, const ValueIds&)>& make) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder inner(*body);
  Graph graph("parts");
  GraphBuilder g(graph);
  ValueIds arguments, values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(inner.input("a" + std::to_string(i), around.type(inputs[i])));
    values.push_back(g.input("x" + std::to_string(i), around.type(inputs[i])));
  }
  body->add_result("r0", make(inner, arguments));
  graph.add_result("r0", g.add(op, values, {}, body)[0]);
  return graph;
}

// Every element, with all blocks at work on several tiles each, as a mistake in who waits for whom shows only then.
class GpuHopperMatmulInFull : public ::testing::TestWithParam<bool> {
 protected:
  // What the parts have: the product alone, rounded.
  HostTensor product(const std::vector<HostTensor>& arguments) {
    MatmulCase plain = case_;
    plain.form = MatmulForm::kPlain;
    return run_on_gpu(matmul_graph(plain), {arguments[0], arguments[1]}).results[0];
  }
  MatmulCase case_{MatmulForm::kBiasGeluAux, DType::kBF16, 1, 5120, 3072, 256, false, GetParam()};
};

TEST_P(GpuHopperMatmulInFull, FunctionsAreThoseOfTheStoredSum) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (MatmulForm form : {MatmulForm::kBiasGeluAux, MatmulForm::kBiasReluSquaredAux}) {
    case_.form = form;
    Graph graph = matmul_graph(case_);
    std::vector<HostTensor> arguments = random_arguments(graph);
    std::vector<HostTensor> got = run_on_gpu(graph, arguments).results;
    HostTensor sum = product(arguments);
    for (int64_t i = 0; i < sum.size(); ++i) sum.data[size_t(i)] += arguments[2][i % case_.n];
    expect_near(got[0], sum, kBf16Tolerance, "sum");
    Graph alone = single_group(op::flat, graph, {graph.results()[0].value}, [&](GraphBuilder& g, const ValueIds& in) {
      if (form == MatmulForm::kBiasGeluAux) return gelu(g, in[0]);
      ValueId positive = maximum(g, in[0], constant(g, 0, {1, 1}, DType::kBF16));
      return mul(g, positive, positive);
    });
    EXPECT_EQ(to_storage(run_on_gpu(alone, {got[0]}).results[0]), to_storage(got[1])) << "not the same bits";
  }
}

TEST_P(GpuHopperMatmulInFull, GradientEqualsItsParts) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  case_.form = MatmulForm::kGeluGradSums;
  Graph graph = matmul_graph(case_);
  std::vector<HostTensor> arguments = random_arguments(graph);
  std::vector<HostTensor> got = run_on_gpu(graph, arguments).results;
  Graph alone = single_group(op::flat, graph, {graph.nodes()[0].inputs[2], graph.results()[0].value},
                             [](GraphBuilder& g, const ValueIds& in) {
                               return g.add1(op::gelu_grad, {in[0], in[1]});
                             });
  HostTensor gradient = run_on_gpu(alone, {arguments[2], product(arguments)}).results[0];
  expect_near(got[0], gradient, kBf16Tolerance, "gradient");
  HostTensor sums(got[1].type);
  for (int64_t i = 0; i < gradient.size(); ++i) sums.data[size_t(i % case_.n)] += gradient[i];
  expect_near(got[1], sums, {4e-3, 1.6e-2}, "sums, of what was rounded");
  case_.form = MatmulForm::kGeluGrad;
  EXPECT_EQ(to_storage(run_on_gpu(matmul_graph(case_), arguments).results[0]), to_storage(got[0]));
}

TEST_P(GpuHopperMatmulInFull, SameBitsEveryTime) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (MatmulForm form : {MatmulForm::kBiasGeluAux, MatmulForm::kGeluGradSums, MatmulForm::kGateSums}) {
    case_.form = form;
    Graph graph = matmul_graph(case_);
    expect_deterministic(graph, random_arguments(graph));
  }
}

INSTANTIATE_TEST_SUITE_P(B, GpuHopperMatmulInFull, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Transposed" : "AsItLies"; });

}  // namespace
}  // namespace tokamak::test
