// sum_squares and multi_adamw over many tensors on the GPU.
#include "graph/builder.h"
#include "ops/adamw.h"
#include "ops/adamw8bit.h"
#include "ops/reduce.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

// Sizes around vectors, pieces and blocks, and types in turn.
ValueType tensor_type(int i, bool low) {
  constexpr int64_t kSizes[] = {1, 3, 4, 17, 1000, 8191, 8192, 8193, 32768, 40001, 7, 100003};
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  return {low ? kTypes[i % 3] : DType::kF32, {kSizes[size_t(i) % std::size(kSizes)]}};
}

Graph sum_graph(int tensors, bool low) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  for (int i = 0; i < tensors; ++i) inputs.push_back(g.input("x" + std::to_string(i), tensor_type(i, low)));
  graph.add_result("y", g.add1(op::sum_squares, inputs));
  return graph;
}

// The sums themselves are in f32 whatever the inputs are.
TEST(GpuSumSquares, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (int tensors : {1, 2, 12, 300, 1000})
    for (bool low : {false, true}) {
      Graph graph = sum_graph(tensors, low);
      expect_matches_interpreter(graph, random_arguments(graph), kF32Tolerance);
    }
}

Graph pieces_graph(int64_t pieces, int64_t length) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    inputs.push_back(g.input("x" + std::to_string(inputs.size()), {dtype, {pieces, length}}));
  graph.add_result("y", sum_squares_of_pieces(g, inputs, pieces));
  return graph;
}

// However long a piece is: the sums of a part of the pieces have the bits of those of all.
TEST(GpuSumSquares, GivesThoseOfPiecesWhereverTheyBegin) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (int64_t length : {3, 16, 1001, 32768, 40003}) {
    Graph all = pieces_graph(8, length), one = pieces_graph(1, length);
    std::vector<HostTensor> x = random_arguments(all);
    expect_matches_interpreter(all, x, kF32Tolerance);
    std::vector<HostTensor> part;
    for (const HostTensor& whole : x)
      part.push_back(
          {{whole.type.dtype, {1, length}}, {whole.data.begin() + 5 * length, whole.data.begin() + 6 * length}});
    HostTensor of_part = run_on_gpu(one, part).results[0], of_all = run_on_gpu(all, x).results[0];
    for (int64_t tensor = 0; tensor < 3; ++tensor) EXPECT_EQ(of_part[tensor], of_all[8 * tensor + 5]) << length;
  }
}

TEST(GpuSumSquares, GivesTheSameBits) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = sum_graph(30, true);
  expect_deterministic(graph, random_arguments(graph));
}

TEST(GpuSumSquares, ShowsInfinityAndNan) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = sum_graph(12, true);
  for (double bad : {HUGE_VAL, double(NAN)}) {
    std::vector<HostTensor> arguments = random_arguments(graph);
    arguments[11][100002] = bad;
    EXPECT_FALSE(std::isfinite(run_on_gpu(graph, arguments).results[0][0])) << bad;
  }
}

struct Options {
  int tensors = 12;
  bool low = false;       // gradients
  bool in_place = false;  // parameters and moments are states
  DType state = DType::kF32;
};

Graph adamw_graph(const Options& options) {
  Graph graph;
  GraphBuilder g(graph);
  auto kind = options.in_place ? Argument::Kind::kState : Argument::Kind::kInput;
  ValueIds inputs;
  for (const char* name : {"lr", "scale", "step"}) inputs.push_back(g.input(name, {DType::kF32, {}}));
  std::vector<int64_t> decayed;
  for (int i = 0; i < options.tensors; ++i) {
    ValueType type = tensor_type(i, options.low), param{DType::kF32, type.shape}, state{options.state, type.shape};
    std::string number = std::to_string(i);
    inputs.push_back(graph.add_argument(kind, "p" + number, param));
    inputs.push_back(g.input("g" + number, type));
    inputs.push_back(graph.add_argument(kind, "m" + number, state));
    inputs.push_back(graph.add_argument(kind, "v" + number + "_positive", state));
    decayed.push_back(i % 2);
  }
  Attrs attrs{{"beta1", 0.9}, {"beta2", 0.999}, {"decay", 0.1}, {"decayed", decayed}, {"eps", 1e-8}};
  ValueIds outputs = g.add(op::multi_adamw, inputs, attrs);
  for (size_t o = 0; o < outputs.size(); ++o) {
    size_t t = o / 3, part = o % 3;
    if (options.in_place)
      graph.add_update(inputs[3 + 4 * t + (part == 0 ? 0 : part + 1)], outputs[o]);
    else
      graph.add_result("r" + std::to_string(o), outputs[o]);
  }
  return graph;
}

std::vector<HostTensor> adamw_arguments(const Graph& graph, double scale, double step) {
  std::vector<HostTensor> arguments = random_arguments(graph);
  arguments[0][0] = 0.02;
  arguments[1][0] = scale;
  arguments[2][0] = step;
  return arguments;
}

TEST(GpuMultiAdamw, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (bool low : {false, true})
    for (bool in_place : {false, true})
      for (double step : {1, 7, 100000}) {
        Graph graph = adamw_graph({12, low, in_place});
        expect_matches_interpreter(graph, adamw_arguments(graph, 0.7, step), kF32Tolerance);
      }
}

// Which of two bf16 a moment becomes follows from its last bits, in which the device and the interpreter differ.
TEST(GpuMultiAdamw, KeepsItsStatesInBf16) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (bool in_place : {false, true}) {
    Graph graph = adamw_graph({12, true, in_place, DType::kBF16});
    expect_matches_interpreter(graph, adamw_arguments(graph, 0.7, 7), kBf16Tolerance);
    expect_deterministic(graph, adamw_arguments(graph, 0.7, 7));
  }
}

Graph adamw8bit_graph(const Shape& shape, DType grad) {
  Graph graph;
  GraphBuilder g(graph);
  ValueType codes = moment_codes(shape), scales = moment_scales(shape);
  auto state = [&](const char* name, const ValueType& type) {
    return graph.add_argument(Argument::Kind::kState, name, type);
  };
  ValueIds inputs{state("p", {DType::kF32, shape}),  g.input("g", {grad, shape}), state("m", codes),
                  state("m_scale_positive", scales), state("v", codes),           state("v_scale_positive", scales)};
  for (const char* name : {"lr", "scale", "step"}) inputs.push_back(g.input(name, {DType::kF32, {}}));
  ValueIds outputs = g.add(op::adamw8bit, inputs, {{"beta1", 0.9}, {"beta2", 0.95}, {"decay", 0.1}, {"eps", 1e-8}});
  for (size_t o = 0; o < outputs.size(); ++o) graph.add_update(inputs[o == 0 ? 0 : o + 1], outputs[o]);
  return graph;
}

std::vector<HostTensor> adamw8bit_arguments(const Graph& graph, double scale) {
  std::vector<HostTensor> arguments = random_arguments(graph);
  for (size_t codes : {2, 4})
    for (int64_t i = 0; i < arguments[codes].size(); ++i) arguments[codes][i] = double((i * 37 + 11) % 256);
  arguments[6][0] = 0.02, arguments[7][0] = scale, arguments[8][0] = 7;
  for (size_t i : {0, 3, 5})  // f32 as the device has it
    for (double& value : arguments[i].data) value = float(value);
  return arguments;
}

// A code of a number in the middle between two may be either's.
TEST(GpuAdamw8bit, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType grad : {DType::kF32, DType::kBF16})
    for (const Shape& shape : {Shape{64, 768}, Shape{33, 100}, Shape{5, 32}}) {
      Graph graph = adamw8bit_graph(shape, grad);
      std::vector<HostTensor> arguments = adamw8bit_arguments(graph, 0.7);
      Interpretation expected = interpret(graph, arguments), got = run_on_gpu(graph, arguments);
      for (size_t u = 0; u < expected.updates.size(); ++u)
        for (int64_t i = 0; i < expected.updates[u].size(); ++i) {
          bool is_code = expected.updates[u].type.dtype == DType::kU8;
          ASSERT_NEAR(got.updates[u][i], expected.updates[u][i], is_code ? 1 : 1e-5) << "update " << u << " at " << i;
        }
      expect_deterministic(graph, arguments);
    }
}

TEST(GpuAdamw8bit, ScaleZeroLeavesEverything) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = adamw8bit_graph({33, 100}, DType::kF32);
  std::vector<HostTensor> arguments = adamw8bit_arguments(graph, 0);
  arguments[1][5] = NAN;
  expect_matches_interpreter(graph, arguments, kExact);
}

TEST(GpuMultiAdamw, OfManyTensors) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (int tensors : {1, 37, 150, 500}) {
    Graph graph = adamw_graph({tensors, true, true});
    expect_matches_interpreter(graph, adamw_arguments(graph, 1, 3), kF32Tolerance);
  }
}

TEST(GpuMultiAdamw, ScaleZeroLeavesEverything) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (bool in_place : {false, true}) {
    Graph graph = adamw_graph({12, true, in_place});
    std::vector<HostTensor> arguments = adamw_arguments(graph, 0, 3);
    for (size_t i = 4; i < arguments.size(); i += 4) arguments[i][0] = i % 8 ? NAN : HUGE_VAL;
    for (size_t i = 3; i < arguments.size(); ++i)  // f32 as the device has it
      if ((i - 3) % 4 != 1)
        for (double& v : arguments[i].data) v = float(v);
    expect_matches_interpreter(graph, arguments, kExact);
  }
}

TEST(GpuMultiAdamw, RepeatsWhenRecorded) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = adamw_graph({40, true, true});
  std::vector<HostTensor> arguments = adamw_arguments(graph, 1, 3);
  Interpretation plain = run_on_gpu(graph, arguments, 5), recorded = run_on_gpu(graph, arguments, 5, true);
  for (size_t i = 0; i < plain.updates.size(); ++i)
    EXPECT_EQ(plain.updates[i].data, recorded.updates[i].data) << "update " << i;
}

}  // namespace
}  // namespace tokamak::test
