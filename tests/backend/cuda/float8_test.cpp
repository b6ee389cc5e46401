// Products of operands of eight bits on the GPU, by the library and by the own kernel, and what casts to them.
#include "ops/float8.h"
#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/hopper_matmul.h"
#include "graph/builder.h"
#include "ops/classifier.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/form_groups.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak::test {
namespace {

struct Sizes {
  int64_t m, n, k;
};

// What is done to the product.
struct Form {
  const char* name;
  bool bias, gelu, grad, narrow = false;  // narrow: the result has eight bits, and a gradient has its sums beside it
  bool is_own() const { return gelu || grad; }  // a kernel of ours
};
constexpr Form kPlain{"plain", false, false, false}, kBias{"bias", true, false, false};
constexpr Form kGelu{"bias, gelu", true, true, false}, kGeluGrad{"gelu_grad", false, false, true};
constexpr Form kNarrowGelu{"bias, gelu, eight bits", true, true, false, true},
    kNarrowGrad{"gelu_grad, eight bits", false, false, true, true};

Graph graph_of(const Form& form, const Sizes& s, DType left = DType::kF8E4M3) {
  Graph graph("g"), body("body");
  GraphBuilder outer(graph), inner(body);
  ValueIds inputs;
  auto input = [&](const char* name, const ValueType& type) {
    inputs.push_back(outer.input(name, type));
    return inner.input("a" + std::to_string(inputs.size() - 1), type);
  };
  ValueId a = input("a", {left, {s.m, s.k}}), b = input("b", {DType::kF8E4M3, {s.n, s.k}});
  ValueId sa = input("sa_positive", {DType::kF32, {}}), sb = input("sb_positive", {DType::kF32, {}});
  ValueId bias = form.bias ? input("bias", {DType::kBF16, {s.n}}) : kNoValue;
  ValueId other = form.grad ? input("other", {DType::kBF16, {s.m, s.n}}) : kNoValue;
  ValueId narrow = form.narrow ? input("narrow_positive", {DType::kF32, {}}) : kNoValue;
  Attrs attrs{{"result", std::string("bf16")}, {"trans_a", false}, {"trans_b", true}};
  if (!form.bias && !form.grad) {
    graph.add_result("y", outer.add1(op::matmul, {inputs[0], inputs[1], inputs[2], inputs[3]}, attrs));
    return graph;
  }
  ValueId y = inner.add1(op::matmul, {a, b, sa, sb}, attrs);
  if (form.bias) y = add(inner, y, bias);
  if (form.bias) body.add_result("r0", y);
  ValueId made = form.gelu ? gelu(inner, y) : form.grad ? inner.add1(op::gelu_grad, {other, y}) : kNoValue, wide = made;
  if (form.narrow)
    made = cast(inner, mul(inner, cast(inner, made, DType::kF32), narrow), form.gelu ? DType::kF8E4M3 : DType::kF8E5M2);
  if (made != kNoValue) body.add_result(form.gelu ? "r1" : "r0", made);
  if (form.narrow && form.grad) body.add_result("r1", reduce_sum(inner, cast(inner, wide, DType::kF32), {0}, true));
  for (ValueId value : outer.add(op::fused_matmul, inputs, {}, std::make_shared<const Graph>(body)))
    graph.add_result("y" + std::to_string(graph.results().size()), value);
  return graph;
}

cuda::MatmulNode node_of(const Graph& graph) { return cuda::matmul_node(graph, graph.nodes()[0]); }

TEST(Float8Matmul, SaysWhatTheLibraryKnows) {
  EXPECT_TRUE(has_library_formats(node_of(graph_of(kPlain, {32, 48, 64})).problem));
  for (Sizes odd : {Sizes{40, 48, 64}, {32, 40, 64}, {32, 48, 72}})
    EXPECT_FALSE(has_library_formats(node_of(graph_of(kPlain, odd)).problem));
  EXPECT_EQ(node_of(graph_of(kBias, {32, 48, 64})).problem.key(), "f8e4m3>bf16 scaled 32x48x64 nt +bias");
}

TEST(Float8Matmul, FunctionsAreTheOwnKernels) {
  for (const Form& form : {kPlain, kBias, kGelu, kGeluGrad, kNarrowGelu, kNarrowGrad})
    for (cuda::Architecture a : all_architectures())
      EXPECT_EQ(hopper_supports(node_of(graph_of(form, {32, 48, 64})), a), form.is_own() && a.major == 9) << form.name;
}

TEST(Float8Matmul, Compiles) {
  for (const Form& form : {kNarrowGelu, kNarrowGrad, kGelu})
    expect_compiles(
        hopper_matmul_source(node_of(graph_of(form, {32, 48, 64}, form.grad ? DType::kF8E5M2 : DType::kF8E4M3))),
        {"matmul"}, one_architecture());
}

// Some elements are another one of the two beside them than the interpreter takes, a fourth apart in e5m2.
constexpr Tolerance kSteps{0.02, 0.26};

// Less than a tile, parts of tiles, more tiles than blocks, long sums.
TEST(GpuFloat8Matmul, EqualsInterpreter) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (const Form& form : {kPlain, kBias, kGelu, kGeluGrad, kNarrowGelu, kNarrowGrad})
    for (Sizes s : {Sizes{16, 16, 16}, {128, 192, 128}, {304, 400, 272}, {2608, 1600, 32}, {64, 64, 4096}}) {
      for (DType left : {DType::kF8E4M3, DType::kF8E5M2}) {
        Graph graph = graph_of(form, s, left);
        SCOPED_TRACE(fmt::format("{} {}x{}x{}", form.name, s.m, s.n, s.k));
        expect_matches_interpreter(graph, random_arguments(graph), form.narrow ? kSteps : kBf16Tolerance);
      }
    }
}

// One term, and many that are each too small beside it for the sums that the tensor cores keep: together they are half
// as much. So are the gradients of a row's logits, of the target and of all other words.
TEST(GpuFloat8Matmul, SumsOfGradientsKeepWhatIsSmall) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  Graph graph = graph_of(kPlain, {16, 16, 8192}, DType::kF8E5M2);
  std::vector<HostTensor> arguments = random_arguments(graph);
  for (int64_t i = 0; i < arguments[0].size(); ++i) arguments[0][i] = i % 8192 == 0 ? 1 : 0x1p-14;
  for (double& v : arguments[1].data) v = 1;
  expect_matches_interpreter(graph, arguments, kBf16Tolerance);
}

TEST(GpuFloat8Matmul, GivesTheSameBitsEveryTime) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (const Form& form : {kPlain, kGelu}) {
    Graph graph = graph_of(form, {128, 192, 4096});
    expect_deterministic(graph, random_arguments(graph));
  }
}

// Every number, its neighbours, what is too large and what is too small, as the host rounds them.
TEST(GpuFloat8, CastsAreThoseOfTheHost) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (DType type : {DType::kF8E4M3, DType::kF8E5M2}) {
    HostTensor x({DType::kF32, {256, 16}});
    for (int64_t i = 0; i < x.size(); ++i) {
      double value = decode_float8(type, uint8_t(i / 16));
      x[i] = std::isfinite(value) ? double(float(value * (1 + 0.02 * double(i % 16 - 8)))) : 1e9;
    }
    Graph graph("g");
    GraphBuilder g(graph);
    ValueId narrow = cast(g, g.input("x", x.type), type);
    graph.add_result("narrow", narrow);
    graph.add_result("wide", cast(g, narrow, DType::kF32));
    std::vector<HostTensor> got = run_on_gpu(graph, {x}).results, want = interpret(graph, {x}).results;
    for (size_t r = 0; r < 2; ++r) EXPECT_EQ(got[r].data, want[r].data) << dtype_name(type) << " " << r;
  }
}

// Operands of eight bits for the logits and for dx.
Graph classifier_of(int64_t rows, int64_t width, int64_t vocab, int64_t chunk) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueType scale{DType::kF32, {}};
  ValueIds in{g.input("x", {DType::kBF16, {rows, width}}), g.input("w", {DType::kBF16, {vocab, width}}),
              g.input("targets", {DType::kI32, {rows}}), g.input("dloss_positive", {DType::kF32, {rows}})};
  in.push_back(cast(g, in[0], DType::kF8E4M3));
  in.push_back(cast(g, in[1], DType::kF8E4M3));
  in.insert(in.end(), {g.input("a_positive", scale), g.input("b_positive", scale), transpose(g, in[5], {1, 0}),
                       constant(g, 0x1p-12), constant(g, 0x1p12)});
  ValueIds made = g.add(op::classifier, in, {{"chunk", chunk}, {"classes", vocab - 3}});
  for (size_t i = 0; i < 3; ++i) graph.add_result("r" + std::to_string(i), made[i]);
  return graph;
}

// One chunk, equal ones, and one with a rest.
TEST(GpuFloat8, ClassifierEqualsInterpreter) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (int64_t chunk : {96, 48, 64}) {
    Graph graph = classifier_of(96, 64, 400, chunk);
    form_groups(graph, {});
    expect_matches_interpreter(graph, random_arguments(graph), kBf16Tolerance);
  }
}

// A row group, as a norm is one, that also leaves its result in eight bits.
TEST(Float8, GroupsCompile) {
  Graph norm = parse(R"(graph g {
    input x = %0 : bf16[64,768]
    input s = %1 : f32[1,1]
    %2, %3 = row(%0, %1) : bf16[64,768], f8e4m3[64,768] {
      graph body {
        input a0 = %0 : bf16[64,768]
        input a1 = %1 : f32[1,1]
        %2 = cast(%0) {to="f32"} : f32[64,768]
        %3 = reduce_max(%2) {dims=[1], keep=true} : f32[64,1]
        %4 = sub(%2, %3) : f32[64,768]
        %5 = cast(%4) {to="bf16"} : bf16[64,768]
        %6 = mul(%5, %1) : f32[64,768]
        %7 = cast(%6) {to="f8e4m3"} : f8e4m3[64,768]
        result r0 = %5
        result r1 = %7
      }
    }
    result y = %2
    result z = %3
  })");
  expect_compiles(cuda::generate_group(norm.nodes()[0]).source, {"row_group"}, one_architecture());
}

TEST(GpuFloat8, BytesAreTransposed) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Shape shape : {Shape{48, 80}, {33, 7}, {768, 2304}}) {
    Graph graph("g");
    GraphBuilder g(graph);
    graph.add_result("y", transpose(g, g.input("x", {DType::kF8E4M3, shape}), {1, 0}));
    expect_matches_interpreter(graph, random_arguments(graph), kExact);
  }
}

}  // namespace
}  // namespace tokamak::test
