#include "passes/extract.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;

const Graph& whole() {
  static const Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[4]
    param w = %1 : f32[4]
    state s = %2 : f32[4]
    %3 = mul(%0, %1) : f32[4]
    %4 = tanh(%3) : f32[4]
    %5 = add(%4, %2) : f32[4]
    %6 = neg(%5) : f32[4]
    result y = %6
    update %2 = %5
  })");
  return graph;
}

StandIn state(DType dtype) { return {"between", {dtype, {4}}, {Role::kActivation, "", {4}}}; }

TEST(Extract, TakesWhatIsNeededAndLeavesAValueForOthers) {
  EXPECT_EQ(print(extract(whole(), {"first", {}, {}, {{4, state(DType::kF32)}}})), canonical(R"(graph first {
    input x = %0 : f32[4]
    param w = %1 : f32[4]
    state between = %2 {role="activation"} : f32[4]
    %3 = mul(%0, %1) : f32[4]
    %4 = tanh(%3) : f32[4]
    update %2 = %4
  })"));
}

TEST(Extract, DoesNotMakeWhatItIsGiven) {
  Part part{"second", whole().results(), whole().updates(), {}, {{4, state(DType::kF32)}}};
  EXPECT_EQ(print(extract(whole(), part)), canonical(R"(graph second {
    state s = %0 : f32[4]
    state between = %1 {role="activation"} : f32[4]
    %2 = add(%1, %0) : f32[4]
    %3 = neg(%2) : f32[4]
    result y = %3
    update %0 = %2
  })"));
}

TEST(Extract, CastsBetweenAValueAndAStateOfAnotherType) {
  Graph left = extract(whole(), {"first", {}, {}, {{3, state(DType::kBF16)}}});
  EXPECT_EQ(print(left), canonical(R"(graph first {
    input x = %0 : f32[4]
    param w = %1 : f32[4]
    state between = %2 {role="activation"} : bf16[4]
    %3 = mul(%0, %1) : f32[4]
    %4 = cast(%3) {to="bf16"} : bf16[4]
    update %2 = %4
  })"));
  Graph given = extract(whole(), {"second", {{"t", 4}}, {}, {}, {{3, state(DType::kBF16)}}});
  EXPECT_EQ(print(given), canonical(R"(graph second {
    state between = %0 {role="activation"} : bf16[4]
    %1 = cast(%0) {to="f32"} : f32[4]
    %2 = tanh(%1) : f32[4]
    result t = %2
  })"));
}

}  // namespace
}  // namespace tokamak
