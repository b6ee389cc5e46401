#include "passes/eliminate_dead_code.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

TEST(EliminateDead, RemovesWhatNothingReads) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[2]
    param unused = %1 : f32[3]
    %2 = exp(%0) : f32[2]
    %3 = neg(%0) : f32[2]
    %4 = log(%2) : f32[2]
    result y = %3
  })");
  Graph after = before;
  EXPECT_TRUE(eliminate_dead_code(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2]
    param unused = %1 : f32[3]
    %2 = neg(%0) : f32[2]
    result y = %2
  })"));
  test::expect_same_meaning(before, after);
}

TEST(EliminateDead, KeepsWhatUpdatesAndOtherOutputsNeed) {
  Graph graph = parse(R"(graph g {
    state s = %0 : f32[2]
    param gain = %1 : f32[2]
    %2 = exp(%0) : f32[2]
    %3, %4, %5 = layer_norm(%0, %1) {eps=1e-05} : f32[2], f32[1], f32[1]
    update %0 = %2
    result mean = %4
  })");
  std::string before = print(graph);
  EXPECT_FALSE(eliminate_dead_code(graph, {}));
  EXPECT_EQ(print(graph), before);
}

}  // namespace
}  // namespace tokamak
