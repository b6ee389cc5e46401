#include "passes/scatter_in_place.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

TEST(ScatterInPlace, AddsRowsOntoTheOtherGradient) {
  Graph before = parse(R"(graph g {
    input dy = %0 : f32[3,2]
    input ids = %1 : i32[3]
    input other = %2 : f32[4,2]
    %3 = embedding_grad(%0, %1) {rows=4} : f32[4,2]
    %4 = exp(%2) : f32[4,2]
    %5 = add(%4, %3) #backward : f32[4,2]
    result y = %5
  })");
  Graph after = before;
  EXPECT_TRUE(scatter_in_place(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input dy = %0 : f32[3,2]
    input ids = %1 : i32[3]
    input other = %2 : f32[4,2]
    %3 = exp(%2) : f32[4,2]
    %4 = embedding_grad(%0, %1, %3) {rows=4} #backward : f32[4,2]
    result y = %4
  })"));
  test::expect_same_meaning(before, after);
}

TEST(ScatterInPlace, LeavesAGradientThatIsReadElsewhere) {
  for (const char* reader : {"result grad = %3", "%5 = exp(%3) : f32[4,2] result grad = %5"}) {
    Graph graph = parse(std::string(R"(graph g {
      input dy = %0 : f32[3,2]
      input ids = %1 : i32[3]
      input other = %2 : f32[4,2]
      %3 = embedding_grad(%0, %1) {rows=4} : f32[4,2]
      %4 = add(%2, %3) : f32[4,2]
    )") + reader + " result y = %4 }");
    std::string before = print(graph);
    EXPECT_FALSE(scatter_in_place(graph, {}));
    EXPECT_EQ(print(graph), before);
  }
}

}  // namespace
}  // namespace tokamak
