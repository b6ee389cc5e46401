#include "passes/join_pads.h"

#include "passes/eliminate_dead_code.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

const char* kThree = R"(graph g {
  input x = %0 : f32[3,2]
  input y = %1 : f32[3,1]
  input z = %2 : f32[3,2]
  %3 = pad(%2) {after=0, before=3, dim=1} : f32[3,5]
  %4 = pad(%0) {after=3, before=0, dim=1} : f32[3,5]
  %5 = add(%3, %4) : f32[3,5]
  %6 = pad(%1) {after=2, before=2, dim=1} : f32[3,5]
  %7 = add(%5, %6) #backward : f32[3,5]
  result sum = %7
})";

TEST(JoinPads, PutsSlicesSideBySide) {
  Graph before = parse(kThree), after = before;
  EXPECT_TRUE(join_pads(after, {}));
  eliminate_dead_code(after, {});
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[3,2]
    input y = %1 : f32[3,1]
    input z = %2 : f32[3,2]
    %3 = concat(%0, %1, %2) {dim=1} #backward : f32[3,5]
    result sum = %3
  })"));
  test::expect_same_meaning(before, after);
}

void expect_left_alone(std::string text) {
  Graph graph = parse(text);
  std::string before = print(graph);
  EXPECT_FALSE(join_pads(graph, {}));
  EXPECT_EQ(print(graph), before);
}

TEST(JoinPads, LeavesASumThatIsReadElsewhere) {
  std::string text = kThree;
  text.insert(text.rfind('}'), "  result part = %5\n");
  expect_left_alone(text);
}

TEST(JoinPads, LeavesGapsAndOverlaps) {
  expect_left_alone(R"(graph g {
    input x = %0 : f32[3,2]
    %1 = pad(%0) {after=3, before=0, dim=1} : f32[3,5]
    %2 = pad(%0) {after=0, before=3, dim=1} : f32[3,5]
    %3 = add(%1, %2) : f32[3,5]
    result sum = %3
  })");
  expect_left_alone(R"(graph g {
    input x = %0 : f32[3,3]
    %1 = pad(%0) {after=2, before=0, dim=1} : f32[3,5]
    %2 = pad(%0) {after=0, before=2, dim=1} : f32[3,5]
    %3 = add(%1, %2) : f32[3,5]
    result sum = %3
  })");
}

TEST(JoinPads, LeavesWhatDoesNotReachTheEnd) {
  expect_left_alone(R"(graph g {
    input x = %0 : f32[3,2]
    %1 = pad(%0) {after=3, before=0, dim=1} : f32[3,5]
    %2 = pad(%0) {after=1, before=2, dim=1} : f32[3,5]
    %3 = add(%1, %2) : f32[3,5]
    result sum = %3
  })");
}

TEST(JoinPads, LeavesPadsOfDifferentDims) {
  expect_left_alone(R"(graph g {
    input x = %0 : f32[2,4]
    input y = %1 : f32[4,2]
    %2 = pad(%0) {after=2, before=0, dim=0} : f32[4,4]
    %3 = pad(%1) {after=0, before=2, dim=1} : f32[4,4]
    %4 = add(%2, %3) : f32[4,4]
    result sum = %4
  })");
}

}  // namespace
}  // namespace tokamak
