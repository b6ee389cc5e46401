#include "passes/split_reductions.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::canonical;
using test::parse;

void expect_becomes(const std::string& text, const std::string& split) {
  Graph before = parse(text), after = before;
  EXPECT_TRUE(split_reductions(after, {}));
  verify(after);
  EXPECT_EQ(print(after), canonical(split));
  test::expect_same_meaning(before, after);
}

void expect_unchanged(const std::string& reduced) {
  std::string text = "graph g {\n input x = %0 : f32[4,64,512]\n" + reduced + "\n result y = %1\n }";
  Graph graph = parse(text);
  EXPECT_FALSE(split_reductions(graph, {}));
}

TEST(SplitReductions, SumsRowsFirst) {
  expect_becomes(R"(graph g {
    input x = %0 : f32[4,64,512]
    %1 = reduce_sum(%0) {dims=[0,1,2], keep=false} : f32[]
    result y = %1
  })",
                 R"(graph g {
    input x = %0 : f32[4,64,512]
    %1 = reduce_sum(%0) {dims=[2], keep=true} : f32[4,64,1]
    %2 = reshape(%1) {shape=[1,256]} : f32[1,256]
    %3 = reduce_sum(%2) {dims=[1], keep=true} : f32[1,1]
    %4 = reshape(%3) {shape=[]} : f32[]
    result y = %4
  })");
}

TEST(SplitReductions, LeavesWhatIsKept) {
  expect_becomes(R"(graph g {
    input x = %0 : f32[2,256,512]
    %1 = reduce_max(%0) {dims=[1,2], keep=true} : f32[2,1,1]
    result y = %1
  })",
                 R"(graph g {
    input x = %0 : f32[2,256,512]
    %1 = reduce_max(%0) {dims=[2], keep=true} : f32[2,256,1]
    %2 = reshape(%1) {shape=[2,256]} : f32[2,256]
    %3 = reduce_max(%2) {dims=[1], keep=true} : f32[2,1]
    %4 = reshape(%3) {shape=[2,1,1]} : f32[2,1,1]
    result y = %4
  })");
}

TEST(SplitReductions, LeavesWhatIsShortOrHasManyResults) {
  expect_unchanged("%1 = reduce_sum(%0) {dims=[1,2], keep=false} : f32[4]");  // of 32768 each
  expect_unchanged("%1 = reduce_sum(%0) {dims=[0,1], keep=false} : f32[512]");
  expect_unchanged("%1 = reduce_sum(%0) {dims=[0,2], keep=false} : f32[64]");
  expect_unchanged("%1 = reduce_sum(%0) {dims=[2], keep=false} : f32[4,64]");
}

}  // namespace
}  // namespace tokamak
