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
