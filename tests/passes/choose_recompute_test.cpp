#include "passes/choose_recompute.h"

#include "graph/op_def.h"
#include "passes/apply_recompute.h"
#include "passes/live_bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

const char* kText = R"(graph g {
  input x = %0 : f32[1024,64]
  param w = %1 : f32[64,64]
  %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[1024,64]
  %3 = gelu(%2) : f32[1024,64]
  %4 = matmul(%3, %1) {trans_a=false, trans_b=false} : f32[1024,64]
  %5 = gelu(%4) : f32[1024,64]
  %6 = matmul(%5, %1) {trans_a=false, trans_b=false} : f32[1024,64]
  %7 = sum_squares(%6) : f32[]
  %8 = matmul(%5, %6) {trans_a=true, trans_b=false} #backward : f32[64,64]
  %9 = matmul(%6, %1) {trans_a=false, trans_b=true} #backward : f32[1024,64]
  %10 = gelu_grad(%4, %9) #backward : f32[1024,64]
  %11 = matmul(%3, %10) {trans_a=true, trans_b=false} #backward : f32[64,64]
  %12 = matmul(%10, %1) {trans_a=false, trans_b=true} #backward : f32[1024,64]
  %13 = gelu_grad(%2, %12) #backward : f32[1024,64]
  %14 = matmul(%0, %13) {trans_a=true, trans_b=false} #backward : f32[64,64]
  result loss = %7
  result a = %8
  result b = %11
  result c = %14
})";

PassContext with_budget(double bytes) {
  PassContext context;
  context.options.memory_budget_gib = bytes / (1024.0 * 1024 * 1024);
  return context;
}

int count_chosen(const Graph& graph, std::string_view op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op->name == op && node.recompute;
  return count;
}

constexpr double kTensor = 1024 * 64 * 4;

TEST(ChooseRecompute, DoesNotFireWhenAllFits) {
  Graph graph = parse(kText);
  EXPECT_FALSE(choose_recompute(graph, with_budget(10 * kTensor)));
}

TEST(ChooseRecompute, CountsToWhatItIsTold) {
  Graph graph = parse(kText), other = graph;
  PassContext context = with_budget(10 * kTensor);
  context.recompute_gib = with_budget(double(peak_live_bytes(graph)) - 0.5 * kTensor).options.memory_budget_gib;
  EXPECT_TRUE(choose_recompute(graph, context));
  std::swap(context.recompute_gib, context.options.memory_budget_gib);
  EXPECT_FALSE(choose_recompute(other, context));
}

// What a budget chose, for a graph with the same forward pass.
TEST(ChooseRecompute, TakesSoManyNodes) {
  for (double missing : {0.5, 1.5, 2.5}) {
    Graph expected = parse(kText), got = expected;
    choose_recompute(expected, with_budget(double(peak_live_bytes(expected)) - missing * kTensor));
    PassContext context = with_budget(1);
    context.recompute_nodes = count_chosen(expected, "gelu") + count_chosen(expected, "matmul");
    EXPECT_GT(context.recompute_nodes, 0);
    EXPECT_TRUE(choose_recompute(got, context));
    EXPECT_EQ(print(got), print(expected)) << missing;
    context.recompute_nodes = 0;
    EXPECT_FALSE(choose_recompute(got = parse(kText), context));
  }
}

TEST(ChooseRecompute, TakesTheCheapOnesFirst) {
  Graph graph = parse(kText);
  double peak = double(peak_live_bytes(graph));
  EXPECT_TRUE(choose_recompute(graph, with_budget(peak - 0.5 * kTensor)));
  EXPECT_GE(count_chosen(graph, "gelu"), 1);
  EXPECT_EQ(count_chosen(graph, "matmul"), 0);
  EXPECT_EQ(count_chosen(graph, "sum_squares"), 0);
}

TEST(ChooseRecompute, LowersThePeakAndKeepsTheMeaning) {
  Graph before = parse(kText), after = before;
  ASSERT_TRUE(choose_recompute(after, with_budget(peak_live_bytes(before) - 0.5 * kTensor)));
  ASSERT_TRUE(apply_recompute(after, {}));
  verify(after);
  EXPECT_LE(double(peak_live_bytes(after)), double(peak_live_bytes(before)) - 0.5 * kTensor);
  test::expect_same_meaning(before, after);
}

// What context ranks have gathered is not gathered again: where it would be kept for that alone, as attention's keys
// and values, nothing is won.
TEST(ChooseRecompute, KeepsWhatIsSmallerThanWhatItIsMadeOf) {
  const std::string text = R"(graph g {
    input x = %0 : f32[512,64]
    %1 = exp(%0) : f32[512,64]
    %2 = all_gather(%1) {axis="context", dims=[0], size=2} : f32[1024,64]
    %3 = slice(%2) {begin=0, dim=0, size=512} : f32[512,64]
    %4 = tanh(%3) : f32[512,64]
    %5 = mul(%2, %2) : f32[1024,64]
    %6 = sum_squares(%5) : f32[]
    %7 = mul(%4, %0) #backward : f32[512,64]
    %8 = sum_squares(READ) #backward : f32[]
    result loss = %6
    result a = %7
    result b = %8
  })";
  for (auto [read, chosen] : {std::pair("%7", 0), {"%2", 1}}) {
    Graph graph = parse(std::string(text).replace(text.find("READ"), 4, read).c_str());
    choose_recompute(graph, with_budget(1));
    EXPECT_EQ(count_chosen(graph, "tanh"), chosen) << read;
  }
}

TEST(ChooseRecompute, OfAViewWhatItShowsIsKept) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[8,4]
    %1 = exp(%0) : f32[8,4]
    %2 = reshape(%1) {shape=[32]} : f32[32]
    %3 = tanh(%0) : f32[8,4]
    %4 = sum_squares(%3) : f32[]
    %5 = sum_squares(%2) #backward : f32[]
    result loss = %4
    result a = %5
  })");
  ASSERT_TRUE(choose_recompute(graph, with_budget(200)));
  EXPECT_EQ(count_chosen(graph, "exp"), 1);
}

TEST(LiveBytes, ResultsLiveToTheEnd) {
  auto peak_with =
      [](const char* result) {
        return peak_live_bytes(parse(std::string(R"(graph g {
      input x = %0 : f32[8]
      %1 = exp(%0) : f32[8]
      %2 = neg(%1) : f32[8]
      %3 = exp(%2) : f32[8]
      result y = %3 )") + result + " }"));
      };
  EXPECT_EQ(peak_with(""), 2 * 8 * 4);
  EXPECT_EQ(peak_with("result z = %1"), 3 * 8 * 4);
}

// What one keeps for its backward pass is %3; %2 is there once for all.
TEST(LiveBytes, CountsAllMicroBatchesOfAStage) {
  Graph graph = parse(R"(graph g {
    param w = %0 : f32[8]
    state stream.1 = %1 {role="residual"} : f32[8]
    state stream_grad.1 = %6 {role="residual"} : f32[8]
    %2 = exp(%0) : f32[8]
    %3 = mul(%1, %2) : f32[8]
    %4 = neg(%3) : f32[8]
    %5 = mul(%3, %2) #backward : f32[8]
    update %1 = %4
    update %6 = %5
  })");
  EXPECT_EQ(peak_live_bytes(graph), 2 * 8 * 4);
  EXPECT_EQ(peak_live_bytes(graph, 4), (1 + 3) * 8 * 4);
}

TEST(LiveBytes, CountsWhatIsAliveTogetherAndSharesViews) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[8]
    %1 = exp(%0) : f32[8]
    %2 = reshape(%1) {shape=[2,4]} : f32[2,4]
    %3 = neg(%2) : f32[2,4]
    %4 = exp(%3) : f32[2,4]
    result y = %4
  })");
  EXPECT_EQ(peak_live_bytes(graph), 2 * 8 * 4);
}

// Both GELUs are of one kind, and give more bytes in a second than the products before them.
TEST(ChooseRecompute, TakesWholeKindsWhereTheirNumberIsSaid) {
  auto chosen = [](int64_t kinds, std::string_view op) {
    Graph graph = parse(kText);
    PassContext context = with_budget(kTensor);
    context.recompute_kinds = kinds;
    EXPECT_EQ(choose_recompute(graph, context), kinds > 0);
    return count_chosen(graph, op);
  };
  EXPECT_EQ(chosen(0, "gelu"), 0);
  EXPECT_EQ(chosen(1, "gelu"), 2);
  EXPECT_EQ(chosen(1, "matmul"), 0);
  EXPECT_EQ(chosen(99, "gelu"), 2);
}

TEST(ChooseRecompute, TakesWhatIsNamed) {
  auto chosen = [](const char* name, std::string_view op) {
    Graph graph = parse(kText);
    PassContext context;
    context.options.recompute = name;
    EXPECT_TRUE(choose_recompute(graph, context)) << name;
    return count_chosen(graph, op);
  };
  EXPECT_EQ(chosen("selective", "gelu"), 2);
  EXPECT_EQ(chosen("selective", "matmul"), 0);
  EXPECT_EQ(chosen("full", "gelu"), 2);
  EXPECT_EQ(chosen("full", "matmul"), 3);
}

// The residual stream of two blocks: what the first one ends with stays, and the stream inside of them does not.
TEST(ChooseRecompute, FullKeepsWhatBlocksGiveToEachOther) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[1024,64]
    %1 = gelu(%0) : f32[1024,64]
    %2 = tanh(%1) : f32[1024,64]
    %3 = add(%1, %2) : f32[1024,64]
    %4 = tanh(%3) : f32[1024,64]
    %5 = add(%3, %4) : f32[1024,64]
    %6 = tanh(%5) : f32[1024,64]
    %7 = add(%5, %6) : f32[1024,64]
    %8 = tanh(%7) : f32[1024,64]
    %9 = sum_squares(%8) : f32[]
    %10 = mul(%3, %4) #backward : f32[1024,64]
    %11 = mul(%5, %6) #backward : f32[1024,64]
    %12 = mul(%7, %8) #backward : f32[1024,64]
    result loss = %9
    result a = %10
    result b = %11
    result c = %12
  })");
  PassContext context;
  context.options.recompute = "full";
  ASSERT_TRUE(choose_recompute(graph, context));
  std::vector<bool> again;
  for (const Node& node : graph.nodes())
    if (node.op->name == "add") again.push_back(node.recompute);
  EXPECT_EQ(again, (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace tokamak
