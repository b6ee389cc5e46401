#include "ops/row_block.h"

#include "base/error.h"
#include "graph/single_node.h"
#include "ops/interpret.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "tests/ops/harness.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

std::shared_ptr<const Graph> body(std::string_view text) { return std::make_shared<const Graph>(parse(text)); }

constexpr std::string_view kProduct = R"(graph block {
  input a0 = %0 : f32[2,4]
  input a1 = %1 : f32[4,5]
  %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,5]
  result r0 = %2
})";

constexpr std::string_view kFused = R"(graph block {
  input a0 = %0 : f32[2,4]
  input a1 = %1 : f32[4,5]
  input a2 = %2 : f32[5]
  %3, %4 = fused_matmul(%0, %1, %2) : f32[2,5], f32[2,5] {
    graph body {
      input a0 = %0 : f32[2,4]
      input a1 = %1 : f32[4,5]
      input a2 = %2 : f32[5]
      %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,5]
      %4 = add(%3, %2) : f32[2,5]
      %5 = gelu(%4) : f32[2,5]
      result r0 = %5
      result r1 = %4
    }
  }
  result r0 = %3
  result r1 = %4
})";

constexpr std::string_view kWrong = R"(graph block {
  input a0 = %0 : f32[2,4]
  input a1 = %1 : f32[2,4]
  %2 = add(%0, %1) : f32[2,4]
  result r0 = %2
})";

OpCase case_of(std::string name, std::string_view text, int64_t size, int64_t step, double coordinate,
               bool alone = false) {
  OpCase c{std::move(name), &op::row_block, {}, {{"size", size}, {"step", step}}, 1e-6, body(text)};
  if (alone) c.attrs.set("alone", true);
  for (const Argument& argument : c.body->arguments()) {
    Shape shape = c.body->shape(argument.value);
    if (argument.name == "a0" && (step > 0 || alone)) shape[0] *= size;
    c.inputs.push_back(f32(std::move(shape)));
  }
  c.inputs.push_back(i32({}, coordinate, coordinate + 1));
  for (size_t i = 0; step > 0 && !alone && i < c.body->results().size(); ++i) c.inputs.push_back(f32({2 * size, 5}));
  return c;
}

}  // namespace

std::vector<OpCase> row_block_cases() {
  return {
      case_of("Own", kProduct, 2, 0, 1),
      case_of("Next", kProduct, 3, 1, 2),  // behind the last block comes the first
      case_of("FusedOwn", kFused, 2, 0, 0),
      case_of("FusedLast", kFused, 3, 2, 1),
      case_of("AloneOwn", kProduct, 3, 0, 2, true),
      case_of("AloneNext", kFused, 2, 1, 1, true),
  };
}

namespace {

// All steps, on a rank of this coordinate.
TEST(RowBlock, StepsGiveTheProduct) {
  for (int64_t coordinate : {0, 1, 2}) {
    Graph graph("g");
    GraphBuilder g(graph);
    ValueId x = g.input("x", {DType::kF32, {2, 4}}), all = g.input("all", {DType::kF32, {6, 4}}),
            w = g.input("w", {DType::kF32, {4, 5}}), bias = g.input("bias", {DType::kF32, {5}}),
            at = g.input("at", {DType::kI32, {}});
    std::shared_ptr<const Graph> block = body(kFused);
    ValueIds rows = row_block(g, block, {x, w, bias}, at, 3, 0, {});
    for (int64_t step : {1, 2}) rows = row_block(g, block, {all, w, bias}, at, 3, step, rows);
    for (ValueId row : rows) graph.add_result(fmt::format("r{}", row), row);
    ValueId sum = add(g, matmul(g, all, w), bias);
    graph.add_result("y", gelu(g, sum));
    graph.add_result("sum", sum);
    verify(graph);
    std::vector<HostTensor> arguments = random_arguments(graph, 3);
    std::copy_n(arguments[1].data.begin() + coordinate * 8, 8, arguments[0].data.begin());
    arguments[4][0] = double(coordinate);
    Interpretation got = interpret(graph, arguments);
    EXPECT_EQ(got.results[0].data, got.results[2].data);
    EXPECT_EQ(got.results[1].data, got.results[3].data);
  }
}

// On each rank, of a block that another one, or itself, has.
TEST(RowBlock, AloneGivesTheRowsOfOneRank) {
  for (int64_t step : {0, 1, 2})
    for (int64_t coordinate : {0, 1, 2}) {
      Graph graph("g");
      GraphBuilder g(graph);
      ValueId all = g.input("all", {DType::kF32, {6, 4}}), w = g.input("w", {DType::kF32, {4, 5}}),
              at = g.input("at", {DType::kI32, {}});
      graph.add_result("rows", row_block_alone(g, body(kProduct), {all, w}, at, 3, step)[0]);
      graph.add_result("y", slice(g, matmul(g, all, w), 0, 2 * ((coordinate + step) % 3), 2));
      verify(graph);
      std::vector<HostTensor> arguments = random_arguments(graph, 3);
      arguments[2][0] = double(coordinate);
      Interpretation got = interpret(graph, arguments);
      EXPECT_EQ(got.results[0].data, got.results[1].data);
    }
}

TEST(RowBlock, CostsItsRowsAlone) {
  Graph graph = case_graph(row_block_cases()[1]);
  Cost cost = node_cost(graph, graph.nodes()[0]);
  EXPECT_EQ(cost.flops, 2.0 * 2 * 4 * 5);
  EXPECT_EQ(cost.bytes, 4.0 * (2 * 4 + 4 * 5 + 2 * 5));
}

TEST(RowBlock, IsMeasuredAsItsProduct) {
  Graph own = case_graph(row_block_cases()[0]), next = case_graph(row_block_cases()[1]);
  auto key = [](const Graph& graph) {
    KernelNode kernel = kernel_node(graph, graph.nodes()[0]);
    return kernel_key(kernel.graph, kernel.node);
  };
  EXPECT_EQ(key(own), key(next));
}

TEST(RowBlock, BeginsWhereTheRanksRowsAre) {
  Graph graph = case_graph(row_block_cases()[1]);  // step 1 of 3
  for (auto [coordinate, block] : {std::pair{0, 1}, {1, 2}, {2, 0}}) {
    BlockOffsets at = block_offsets(graph, graph.nodes()[0], coordinate);
    EXPECT_EQ(at.inputs, (std::vector<int64_t>{block * 2 * 4 * 4, 0}));
    EXPECT_EQ(at.outputs, (std::vector<int64_t>{block * 2 * 5 * 4}));
  }
}

TEST(RowBlock, RefusesWhatDoesNotFit) {
  OpCase c = row_block_cases()[1];
  c.attrs.set("step", int64_t(3));
  expect_refused(c, "step 3 of 3");
  c = row_block_cases()[1];
  c.inputs[0] = f32({4, 4});
  expect_refused(c, "input 0 as f32[2,4] or with 3 times its rows, got f32[4,4]");
  c = row_block_cases()[1];
  c.inputs.pop_back();
  expect_refused(c, "expected 4 inputs, got 3");
  c = row_block_cases()[1];
  c.inputs[3] = f32({6, 4});
  expect_refused(c, "to have given f32[6,5], got f32[6,4]");
}

TEST(RowBlock, IsOfOneProduct) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {2, 4}}), at = g.input("at", {DType::kI32, {}});
  row_block(g, body(kWrong), {x, x}, at, 2, 0, {});
  EXPECT_THROW(verify(graph), InternalError);
}

}  // namespace
}  // namespace tokamak::test
