#include "passes/apply_recompute.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

TEST(ApplyRecompute, ComputesMarkedValuesAgainBeforeTheirFirstBackwardUse) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = exp(%0) #recompute : f32[2,3]
    %2 = tanh(%1) #recompute : f32[2,3]
    %3 = reshape(%2) {shape=[6]} : f32[6]
    %4 = neg(%3) : f32[6]
    %5 = mul(%4, %4) #backward : f32[6]
    %6 = mul(%3, %5) #backward : f32[6]
    %7 = mul(%3, %6) #backward : f32[6]
    result y = %4
    result z = %7
  })");
  Graph after = before;
  EXPECT_TRUE(apply_recompute(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = exp(%0) #recompute : f32[2,3]
    %2 = tanh(%1) #recompute : f32[2,3]
    %3 = reshape(%2) {shape=[6]} : f32[6]
    %4 = neg(%3) : f32[6]
    %5 = mul(%4, %4) #backward : f32[6]
    %6 = exp(%0) #backward #recompute : f32[2,3]
    %7 = tanh(%6) #backward #recompute : f32[2,3]
    %8 = reshape(%7) {shape=[6]} #backward #recompute : f32[6]
    %9 = mul(%8, %5) #backward : f32[6]
    %10 = mul(%8, %9) #backward : f32[6]
    result y = %4
    result z = %10
  })"));
  test::expect_same_meaning(before, after);
}

TEST(ApplyRecompute, SendsAgainWhatTensorRanksDo) {
  for (auto [axis, again] : {std::pair("tensor", 1), {"data", 0}, {"context", 0}}) {
    std::string text = R"(graph g {
      input x = %0 : f32[4,8]
      %1 = exp(%0) : f32[4,8]
      %2 = all_gather(%1) {axis="AXIS", dims=[0], size=2} #recompute : f32[8,8]
      %3 = sum_squares(%2) : f32[]
      %4 = mul(%2, %2) #backward : f32[8,8]
      result loss = %3
      result a = %4
    })";
    Graph graph = parse(text.replace(text.find("AXIS"), 4, axis).c_str());
    apply_recompute(graph, {});
    EXPECT_EQ(test::count_ops(graph, "all_gather"), 1 + again) << axis;
  }
}

// The product is computed again before the backward pass has gathered w for itself: that copy then serves both.
constexpr std::string_view kGathered = R"(graph g {
  input x = %0 : bf16[4,8]
  param w = %1 {cuts="data:2@0", global=[8,8]} : f32[4,8]
  %2 = cast(%1) {to="bf16"} : bf16[4,8]
  %3 = all_gather(%2) {axis="data", dims=[0], size=2} : bf16[8,8]
  %4 = matmul(%0, %3) {trans_a=false, trans_b=false} #recompute : bf16[4,8]
  %5 = exp(%4) : bf16[4,8]
  %6 = mul(%5, %4) #backward : bf16[4,8]
  %7 = cast(%1) {to="bf16"} #backward : bf16[4,8]
  %8 = all_gather(%7) {axis="data", dims=[0], size=2} #backward : bf16[8,8]
  %9 = matmul(%6, %8) {trans_a=false, trans_b=true} #backward : bf16[4,8]
  result y = %9
})";

TEST(ApplyRecompute, GathersParametersForTheBackwardPassOnce) {
  Graph after = parse(kGathered);
  EXPECT_TRUE(apply_recompute(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : bf16[4,8]
    param w = %1 {cuts="data:2@0", global=[8,8]} : f32[4,8]
    %2 = cast(%1) {to="bf16"} : bf16[4,8]
    %3 = all_gather(%2) {axis="data", dims=[0], size=2} : bf16[8,8]
    %4 = matmul(%0, %3) {trans_a=false, trans_b=false} #recompute : bf16[4,8]
    %5 = exp(%4) : bf16[4,8]
    %6 = cast(%1) {to="bf16"} #backward : bf16[4,8]
    %7 = all_gather(%6) {axis="data", dims=[0], size=2} #backward : bf16[8,8]
    %8 = matmul(%0, %7) {trans_a=false, trans_b=false} #backward #recompute : bf16[4,8]
    %9 = mul(%5, %8) #backward : bf16[4,8]
    %10 = matmul(%9, %7) {trans_a=false, trans_b=true} #backward : bf16[4,8]
    result y = %10
  })"));
}

TEST(ApplyRecompute, ReadsWhatIsGatheredForBothPasses) {
  Graph before = parse(R"(graph g {
    input x = %0 : bf16[4,8]
    param w = %1 {cuts="data:2@0", global=[8,8]} : f32[4,8]
    %2 = cast(%1) {to="bf16"} : bf16[4,8]
    %3 = all_gather(%2) {axis="data", dims=[0], size=2} : bf16[8,8]
    %4 = matmul(%0, %3) {trans_a=false, trans_b=false} #recompute : bf16[4,8]
    %5 = mul(%4, %4) #backward : bf16[4,8]
    result y = %5
  })");
  PassContext context;
  for (bool once : {false, true}) {
    Graph after = before;
    context.gathers_once = once;
    EXPECT_TRUE(apply_recompute(after, context));
    EXPECT_EQ(test::count_ops(after, "matmul"), 2);
    EXPECT_EQ(test::count_ops(after, "all_gather"), once ? 1 : 2);
  }
}

TEST(ApplyRecompute, DoesNotGatherAgainWhereNothingIsComputedAgain) {
  std::string text(kGathered);
  text.replace(text.find(" #recompute"), 11, "");
  Graph graph = parse(text);
  EXPECT_FALSE(apply_recompute(graph, {}));
  EXPECT_EQ(print(graph), test::canonical(text));
}

TEST(ApplyRecompute, DoesNotFireWithoutMarksOrBackwardUses) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2]
    %1 = exp(%0) #recompute : f32[2]
    %2 = neg(%0) : f32[2]
    %3 = mul(%2, %2) #backward : f32[2]
    result y = %1
    result z = %3
  })");
  std::string before = print(graph);
  EXPECT_FALSE(apply_recompute(graph, {}));
  EXPECT_EQ(print(graph), before);
}

}  // namespace
}  // namespace tokamak
