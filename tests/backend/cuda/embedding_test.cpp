// embedding and its gradient on the GPU: any mix of ids, in place and not, the same bits every time.
#include "ops/embedding.h"
#include "graph/builder.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

using Ids = std::function<int64_t(int64_t position, int64_t count, int64_t rows)>;

int64_t random_id(int64_t i, int64_t, int64_t rows) {
  return int64_t(uniform_float(philox4x32(5, uint64_t(i))[0]) * float(rows));
}

// All equal, all different, in reversed order, one in the middle of others, words as frequent as in text.
const std::pair<const char*, Ids> kMixes[] = {
    {"random", random_id},
    {"equal", [](int64_t, int64_t, int64_t rows) { return rows / 2; }},
    {"last", [](int64_t, int64_t, int64_t rows) { return rows - 1; }},
    {"different", [](int64_t i, int64_t, int64_t rows) { return i % rows; }},
    {"reversed", [](int64_t i, int64_t count, int64_t rows) { return (count - 1 - i) % rows; }},
    {"two_runs", [](int64_t i, int64_t count, int64_t) { return int64_t(i > count / 3); }},
    {"frequent", [](int64_t i, int64_t n, int64_t rows) { return i % 3 ? 0 : random_id(i, n, rows); }},
};

HostTensor make_ids(const Ids& mix, int64_t count, int64_t rows) {
  HostTensor ids({DType::kI32, {count}});
  for (int64_t i = 0; i < count; ++i) ids[i] = double(mix(i, count, rows));
  return ids;
}

struct Size {
  int64_t ids, rows, cols;
};
const Size kSizes[] = {{1, 1, 1},        {63, 5, 6},       {64, 300, 32}, {65, 2, 40},
                       {1025, 70000, 8}, {3000, 257, 768}, {500, 9, 1600}};

Graph grad_graph(const Size& s, DType dy, DType base, bool on_base) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs{g.input("dy", {dy, {s.ids, s.cols}}), g.input("ids", {DType::kI32, {s.ids}})};
  if (on_base) {
    ValueId state = graph.add_argument(Argument::Kind::kState, "base", {base, {s.rows, s.cols}});
    inputs.push_back(state);
    graph.add_update(state, g.add1(op::embedding_grad, inputs, {{"rows", s.rows}}));
  } else {
    graph.add_result("y", g.add1(op::embedding_grad, inputs, {{"rows", s.rows}}));
  }
  return graph;
}

TEST(GpuEmbedding, PicksRows) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const Size& s : kSizes)
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      Graph graph;
      GraphBuilder g(graph);
      ValueId table = g.input("table", {dtype, {s.rows, s.cols}}), ids = g.input("ids", {DType::kI32, {s.ids}});
      graph.add_result("y", embedding(g, table, ids));
      std::vector<HostTensor> arguments = random_arguments(graph);
      arguments[1] = make_ids(random_id, s.ids, s.rows);
      expect_matches_interpreter(graph, arguments, kExact);
    }
}

TEST(GpuEmbedding, GivesNanForIdsOutOfRange) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (int64_t cols : {8, 3}) {
      Graph graph;
      GraphBuilder g(graph);
      ValueId table = g.input("table", {dtype, {5, cols}}), ids = g.input("ids", {DType::kI32, {4}});
      graph.add_result("y", embedding(g, table, ids));
      HostTensor y =
          run_on_gpu(graph, {random_tensor(graph.type(table), 1), {graph.type(ids), {0, -1, 5, 4}}}).results[0];
      for (int64_t i = 0; i < y.size(); ++i) {
        int64_t row = i / cols;
        EXPECT_EQ(std::isnan(y[i]), row == 1 || row == 2) << i;
      }
    }
}

class GpuEmbeddingGrad : public ::testing::TestWithParam<std::pair<const char*, Ids>> {};

TEST_P(GpuEmbeddingGrad, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const Size& s : kSizes)
    for (DType dy : {DType::kF32, DType::kBF16})
      for (bool on_base : {false, true}) {
        Graph graph = grad_graph(s, dy, DType::kF32, on_base);
        std::vector<HostTensor> arguments = random_arguments(graph, uint64_t(s.ids));
        arguments[1] = make_ids(GetParam().second, s.ids, s.rows);
        expect_matches_interpreter(graph, arguments, kF32Tolerance);
      }
}

TEST_P(GpuEmbeddingGrad, GivesTheSameBits) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = grad_graph({70000, 1000, 64}, DType::kF32, DType::kF32, true);
  std::vector<HostTensor> arguments = random_arguments(graph);
  arguments[1] = make_ids(GetParam().second, 70000, 1000);
  expect_deterministic(graph, arguments);
}

INSTANTIATE_TEST_SUITE_P(Mixes, GpuEmbeddingGrad, ::testing::ValuesIn(kMixes),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(GpuEmbeddingGradTypes, BaseAndGradientInAnyType) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dy : {DType::kF32, DType::kBF16, DType::kF16})
    for (DType base : {DType::kF32, DType::kBF16, DType::kF16}) {
      Graph graph = grad_graph({3000, 257, 40}, dy, base, true);
      std::vector<HostTensor> arguments = random_arguments(graph);
      arguments[1] = make_ids(random_id, 3000, 257);
      expect_matches_interpreter(graph, arguments, tolerance_of(base));
    }
}

TEST(GpuEmbeddingGradTypes, LeavesOutIdsOutOfRange) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = grad_graph({200, 4, 8}, DType::kF32, DType::kF32, true);
  std::vector<HostTensor> arguments = random_arguments(graph), inside = arguments;
  for (int64_t i = 0; i < 200; ++i) {
    bool wrong = i % 5 == 0;
    arguments[1][i] = wrong ? (i % 2 ? -1 : 4 + 300 * double(i)) : double(i % 4);
    inside[1][i] = wrong ? 0 : double(i % 4);
    for (int64_t c = 0; wrong && c < 8; ++c) inside[0][i * 8 + c] = 0;
  }
  expect_near(run_on_gpu(graph, arguments).updates[0], interpret(graph, inside).updates[0], kF32Tolerance, "update");
}

TEST(GpuEmbeddingGradTypes, AddsUpOverRuns) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = grad_graph({300, 7, 24}, DType::kBF16, DType::kF32, true);
  std::vector<HostTensor> arguments = random_arguments(graph);
  arguments[1] = make_ids(random_id, 300, 7);
  HostTensor once = interpret(graph, arguments).updates[0], expected = once;
  for (int64_t i = 0; i < once.size(); ++i) expected[i] += 4 * (once[i] - arguments[2][i]);
  for (bool record : {false, true})
    expect_near(run_on_gpu(graph, arguments, 5, record).updates[0], expected, kF32Tolerance, "five runs");
}

}  // namespace
}  // namespace tokamak::test
