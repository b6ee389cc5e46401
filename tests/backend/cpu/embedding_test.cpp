// Ids that no row of the table has, which the data's own checks may not see. Values are compared in tests/ops.
#include "ops/embedding.h"

#include "graph/builder.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_on_cpu.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr int64_t kRows = 3, kColumns = 2;

void look_up(double id) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId table = g.input("table", {DType::kF32, {kRows, kColumns}}), ids = g.input("ids", {DType::kI32, {2}});
  graph.add_result("y", g.add1(op::embedding, {table, ids}));
  run_on_cpu(graph, {HostTensor(graph.type(table)), HostTensor(graph.type(ids), {0, id})});
}

void add_up(double id) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId dy = g.input("dy", {DType::kF32, {2, kColumns}}), ids = g.input("ids", {DType::kI32, {2}});
  graph.add_result("y", g.add1(op::embedding_grad, {dy, ids}, {{"rows", kRows}}));
  run_on_cpu(graph, {HostTensor(graph.type(dy)), HostTensor(graph.type(ids), {0, id})});
}

TEST(Embedding, RefusesIdsBeyondTheTable) {
  for (double id : {-1.0, double(kRows)}) {
    expect_user_error([&] { look_up(id); }, {"[embedding] expected token ids below the vocabulary's 3, got"});
    expect_user_error([&] { add_up(id); }, {"[embedding] expected token ids below the vocabulary's 3, got"});
  }
  EXPECT_NO_THROW(look_up(kRows - 1));
  EXPECT_NO_THROW(add_up(kRows - 1));
}

}  // namespace
}  // namespace tokamak::test
