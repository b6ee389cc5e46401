#include "compile/stage_border.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::parse;

// Two blocks and what is behind them; %3 are the embeddings, %2 depends on no parameter, %4 on nothing else.
std::string forward(const std::string& read_behind) {
  return R"(graph g {
  input x = %0 : f32[2,4,8]
  param w = %1 : f32[8]
  %2 = mul(%0, %0) : f32[2,4,8]
  %3 = mul(%2, %1) : f32[2,4,8]
  %4 = mul(%1, %1) : f32[8]
  %5 = mul(%3, %4) : f32[2,4,8]
  %6 = add(%5, %2) : f32[2,4,8]
  %7 = mul(%6, %4) : f32[2,4,8]
  %8 = add(%7, %2) : f32[2,4,8]
  %9 = add(%8, )" +
         read_behind + R"() : f32[2,4,8]
  result block.0 = %6
  result block.1 = %8
  result out = %9
})";
}

TEST(JoinedAtEnd, IsNothingWhereTheResidualStreamIsAll) {
  for (int64_t block : {0, 1}) EXPECT_FALSE(joined_at_end(parse(forward("%2")), block)) << block;
}

TEST(JoinedAtEnd, HasAllThatIsReadBehindSideBySide) {
  std::optional<Graph> graph = joined_at_end(parse(forward("%3")), 0);
  ASSERT_TRUE(graph);
  EXPECT_EQ(print(*graph), print(parse(R"(graph g {
  input x = %0 : f32[2,4,8]
  param w = %1 : f32[8]
  %2 = mul(%0, %0) : f32[2,4,8]
  %3 = mul(%2, %1) : f32[2,4,8]
  %4 = mul(%1, %1) : f32[8]
  %5 = mul(%3, %4) : f32[2,4,8]
  %6 = add(%5, %2) : f32[2,4,8]
  %7 = concat(%3, %6) {dim=2} : f32[2,4,16]
  %8 = slice(%7) {begin=0, dim=2, size=8} : f32[2,4,8]
  %9 = slice(%7) {begin=8, dim=2, size=8} : f32[2,4,8]
  %10 = mul(%9, %4) : f32[2,4,8]
  %11 = add(%10, %2) : f32[2,4,8]
  %12 = add(%11, %8) : f32[2,4,8]
  result block.0 = %7
  result block.1 = %11
  result out = %12
})")));
}

// What goes through a stage stands at the same place where it comes in and where it leaves.
TEST(JoinedAtEnd, KeepsTheOrderOfWhatPassesThrough) {
  Graph graph = parse(forward("%3"));
  Graph twice = *joined_at_end(*joined_at_end(graph, 0), 1), once = *joined_at_end(graph, 1);
  auto operands = [](const Graph& of) {
    const Node& joined = of.nodes()[size_t(of.producer(of.find_result("block.1")))];
    return std::pair(joined.op->name, joined.inputs.size());
  };
  EXPECT_EQ(operands(twice), operands(once));
  const Node& last = twice.nodes()[size_t(twice.producer(twice.find_result("block.1")))];
  const Node& passed = twice.nodes()[size_t(twice.producer(last.inputs[0]))];
  EXPECT_EQ(passed.op->name, "slice");
  EXPECT_EQ(passed.attrs.get_int("begin"), 0);
}

}  // namespace
}  // namespace tokamak
