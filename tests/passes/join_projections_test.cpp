#include "passes/join_projections.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <algorithm>
#include <cstring>

namespace tokamak {
namespace {

using test::parse;

// Two heads of queries and one of keys and values, and 18 tokens: more than the columns of all.
const char* kRotary = R"(graph g {
  input x = %0 : f32[2,9,6]
  input dqkv = %1 : f32[2,9,24]
  input positions = %2 : i32[1,9]
  input q = %3 : bf16[8,6]
  input k = %4 : bf16[4,6]
  input v = %5 : bf16[4,6]
  %6 = cast(%3) {to="f32"} : f32[8,6]
  %7 = cast(%4) {to="f32"} : f32[4,6]
  %8 = cast(%5) {to="f32"} : f32[4,6]
  %9 = matmul(%0, %6) {trans_a=false, trans_b=true} : f32[2,9,8]
  %10 = matmul(%0, %7) {trans_a=false, trans_b=true} : f32[2,9,4]
  %11 = matmul(%0, %8) {trans_a=false, trans_b=true} : f32[2,9,4]
  %12 = rotary_qkv(%9, %10, %11, %2) {factor=1.0, head_width=4, high_freq=4.0, low_freq=1.0, original_context=0, theta=100.0} : f32[2,9,24]
  %13, %14, %15 = rotary_qkv_grad(%1, %2) {factor=1.0, group=2, head_width=4, high_freq=4.0, low_freq=1.0, original_context=0, theta=100.0} #backward : f32[2,9,8], f32[2,9,4], f32[2,9,4]
  %16 = matmul(%15, %8) {trans_a=false, trans_b=false} #backward : f32[2,9,6]
  %17 = reshape(%0) {shape=[18,6]} #backward : f32[18,6]
  %18 = reshape(%15) {shape=[18,4]} #backward : f32[18,4]
  %19 = matmul(%18, %17) {trans_a=true, trans_b=false} #backward : f32[4,6]
  %20 = matmul(%14, %7) {trans_a=false, trans_b=false} #backward : f32[2,9,6]
  %21 = reshape(%14) {shape=[18,4]} #backward : f32[18,4]
  %22 = matmul(%21, %17) {trans_a=true, trans_b=false} #backward : f32[4,6]
  %23 = add(%16, %20) #backward : f32[2,9,6]
  %24 = matmul(%13, %6) {trans_a=false, trans_b=false} #backward : f32[2,9,6]
  %25 = reshape(%13) {shape=[18,8]} #backward : f32[18,8]
  %26 = matmul(%25, %17) {trans_a=true, trans_b=false} #backward : f32[8,6]
  %27 = add(%23, %24) #backward : f32[2,9,6]
  result qkv = %12
  result dx = %27
  result dq = %26
  result dk = %22
  result dv = %19
})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kRotary;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

int count(const Graph& graph, std::string_view op) {
  return int(std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op->name == op; }));
}

TEST(JoinProjections, AreOneProductForwardAndInBothGradients) {
  Graph before = parse(kRotary), after = before;
  EXPECT_TRUE(join_projections(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,9,6]
    input dqkv = %1 : f32[2,9,24]
    input positions = %2 : i32[1,9]
    input q = %3 : bf16[8,6]
    input k = %4 : bf16[4,6]
    input v = %5 : bf16[4,6]
    %6 = cast(%3) {to="f32"} : f32[8,6]
    %7 = cast(%4) {to="f32"} : f32[4,6]
    %8 = cast(%5) {to="f32"} : f32[4,6]
    %9 = concat(%6, %7, %8) {dim=0} : f32[16,6]
    %10 = matmul(%0, %9) {trans_a=false, trans_b=true} : f32[2,9,16]
    %11 = packed_rotary(%10, %2) {factor=1.0, group=2, head_width=4, high_freq=4.0, low_freq=1.0, original_context=0, theta=100.0} : f32[2,9,24]
    %12 = packed_rotary_grad(%1, %2) {factor=1.0, group=2, head_width=4, high_freq=4.0, low_freq=1.0, original_context=0, theta=100.0} #backward : f32[2,9,16]
    %13 = reshape(%0) {shape=[18,6]} #backward : f32[18,6]
    %14 = reshape(%12) {shape=[18,16]} #backward : f32[18,16]
    %15 = matmul(%14, %13) {trans_a=true, trans_b=false} #backward : f32[16,6]
    %16 = slice(%15) {begin=0, dim=0, size=8} #backward : f32[8,6]
    %17 = slice(%15) {begin=8, dim=0, size=4} #backward : f32[4,6]
    %18 = slice(%15) {begin=12, dim=0, size=4} #backward : f32[4,6]
    %19 = matmul(%12, %9) {trans_a=false, trans_b=false} #backward : f32[2,9,6]
    result qkv = %11
    result dx = %19
    result dq = %16
    result dk = %17
    result dv = %18
  })"));
  test::expect_same_meaning(before, after, 1e-12);
}

// A product whose result is read elsewhere stays, and so do the others; the gradients do not depend on that.
TEST(JoinProjections, ForwardAndGradientsAreJoinedEachByItself) {
  std::string text = kRotary;
  Graph before = parse(text.insert(text.rfind('}'), "  result v = %11\n")), after = before;
  EXPECT_TRUE(join_projections(after, {}));
  EXPECT_EQ(count(after, "rotary_qkv"), 1);
  EXPECT_EQ(count(after, "rotary_qkv_grad"), 0);
  test::expect_same_meaning(before, after, 1e-12);
  text = kRotary;
  before = after = parse(text.insert(text.rfind('}'), "  result part = %23\n"));
  EXPECT_TRUE(join_projections(after, {}));
  EXPECT_EQ(count(after, "rotary_qkv"), 0);
  EXPECT_EQ(count(after, "rotary_qkv_grad"), 1);
  test::expect_same_meaning(before, after, 1e-12);
}

TEST(JoinProjections, WeightsThatTheBackwardPassGathersAgainAreItsOwn) {
  std::string text = kRotary;
  size_t gradient = text.find("  %16 =");
  std::string again = text.substr(gradient);
  for (auto [from, to] : {std::pair{", %8)", ", %28)"}, {", %7)", ", %29)"}, {", %6)", ", %30)"}})
    again.replace(again.find(from), std::strlen(from), to);
  text.replace(gradient, text.npos, R"(  %28 = cast(%5) {to="f32"} #backward : f32[4,6]
  %29 = cast(%4) {to="f32"} #backward : f32[4,6]
  %30 = cast(%3) {to="f32"} #backward : f32[8,6]
)" + again);
  Graph before = parse(text), after = before;
  EXPECT_TRUE(join_projections(after, {}));
  EXPECT_EQ(count(after, "concat"), 2);
  EXPECT_EQ(count(after, "rotary_qkv") + count(after, "rotary_qkv_grad"), 0);
  test::expect_same_meaning(before, after, 1e-12);
}

void expect_left_alone(const std::string& text) {
  Graph graph = parse(text);
  std::string before = print(graph);
  EXPECT_FALSE(join_projections(graph, {}));
  EXPECT_EQ(print(graph), before);
}

TEST(JoinProjections, LeavesWeightsThatAreNoCopies) {
  std::string text = changed("bf16", "f32");
  for (const char* cast : {"  %6 = cast(%3) {to=\"f32\"} : f32[8,6]\n", "  %7 = cast(%4) {to=\"f32\"} : f32[4,6]\n",
                           "  %8 = cast(%5) {to=\"f32\"} : f32[4,6]\n"})
    text.erase(text.find(cast), std::strlen(cast));
  for (auto [from, to] : {std::pair{"%6", "%3"}, {"%7", "%4"}, {"%8", "%5"}})
    for (size_t at = text.find(from); at != text.npos; at = text.find(from)) text.replace(at, 2, to);
  expect_left_alone(text);
}

TEST(JoinProjections, LeavesFewTokens) {
  std::string text = changed("[2,9,", "[2,8,");
  for (auto [from, to] : {std::pair{"[18,", "[16,"}, {"[1,9]", "[1,8]"}})
    for (size_t at = text.find(from); at != text.npos; at = text.find(from)) text.replace(at, std::strlen(from), to);
  expect_left_alone(text);
}

}  // namespace
}  // namespace tokamak
