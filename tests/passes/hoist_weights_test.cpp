#include "passes/hoist_weights.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;

TEST(HoistWeights, LeavesWhatItGathersInStates) {
  HoistedWeights parts = hoist_weights(test::parse(R"(graph micro_batch {
    input x = %0 : f32[8]
    param w = %1 {cuts="data:2@0", global=[8]} : f32[4]
    param b = %2 {cuts="data:2@0", global=[8]} : f32[4]
    state s = %3 {role="gradient_sum"} : f32[8]
    %4 = cast(%1) {to="bf16"} : bf16[4]
    %5 = cast(%2) {to="bf16"} : bf16[4]
    %6, %7 = all_gather(%4, %5) {axis="data", dims=[0,0], size=2} : bf16[8], bf16[8]
    %8 = cast(%0) {to="bf16"} : bf16[8]
    %9 = mul(%8, %6) : bf16[8]
    %10 = add(%9, %7) : bf16[8]
    %11 = mul(%10, %6) #backward : bf16[8]
    %12 = cast(%11) {to="f32"} #backward : f32[8]
    update %3 = %12
  })"),
                                       {});
  EXPECT_EQ(print(parts.weights), canonical(R"(graph weights {
    param w = %0 {cuts="data:2@0", global=[8]} : f32[4]
    param b = %1 {cuts="data:2@0", global=[8]} : f32[4]
    state weights.w.cast.all_gather = %2 {role="weights"} : bf16[8]
    state weights.b.cast.all_gather = %3 {role="weights"} : bf16[8]
    %4 = cast(%0) {to="bf16"} : bf16[4]
    %5 = cast(%1) {to="bf16"} : bf16[4]
    %6, %7 = all_gather(%4, %5) {axis="data", dims=[0,0], size=2} : bf16[8], bf16[8]
    update %2 = %6
    update %3 = %7
  })"));
  EXPECT_EQ(print(parts.rest), canonical(R"(graph micro_batch {
    input x = %0 : f32[8]
    state s = %1 {role="gradient_sum"} : f32[8]
    state weights.w.cast.all_gather = %2 {role="weights"} : bf16[8]
    state weights.b.cast.all_gather = %3 {role="weights"} : bf16[8]
    %4 = cast(%0) {to="bf16"} : bf16[8]
    %5 = mul(%4, %2) : bf16[8]
    %6 = add(%5, %3) : bf16[8]
    %7 = mul(%6, %2) #backward : bf16[8]
    %8 = cast(%7) {to="f32"} #backward : f32[8]
    update %1 = %8
  })"));
}

// Over data, then context; and what is whole on every rank is read as it is.
TEST(HoistWeights, LeavesWhatTheLastOfSeveralGathersGives) {
  HoistedWeights parts = hoist_weights(test::parse(R"(graph micro_batch {
    param w = %0 {cuts="data:2@0 context:2@0x2", global=[8]} : f32[2]
    param b = %1 : f32[8]
    state s = %2 {role="gradient_sum"} : f32[8]
    %3 = all_gather(%0) {axis="context", dims=[0], size=2} : f32[4]
    %4 = all_gather(%3) {axis="data", dims=[0], size=2} : f32[8]
    %5 = mul(%4, %1) : f32[8]
    update %2 = %5
  })"),
                                       {});
  EXPECT_EQ(test::count_ops(parts.weights, "all_gather"), 2);
  ASSERT_EQ(parts.weights.updates().size(), 1u);
  EXPECT_EQ(parts.weights.find_argument("b"), kNoValue);
  EXPECT_EQ(test::count_ops(parts.rest, "all_gather"), 0);
  EXPECT_NE(parts.rest.find_argument("b"), kNoValue);
}

TEST(HoistWeights, LeavesGathersOfOtherValuesAndOfTheUpdate) {
  Graph graph = test::parse(R"(graph micro_batch {
    input x = %0 : f32[4]
    param w = %1 {cuts="data:2@0", global=[8]} : f32[4]
    state s = %2 : f32[8]
    %3 = mul(%0, %1) : f32[4]
    %4 = all_gather(%3) {axis="data", dims=[0], size=2} : f32[8]
    %5 = all_gather(%1) {axis="data", dims=[0], size=2} #update : f32[8]
    %6 = add(%4, %5) #update : f32[8]
    update %2 = %6
  })");
  HoistedWeights parts = hoist_weights(graph, {});
  EXPECT_TRUE(parts.weights.nodes().empty());
  EXPECT_EQ(print(parts.rest), print(graph));
}

constexpr const char* kCasts = R"(graph micro_batch {
    input x = %0 : bf16[8]
    param w = %1 : f32[8]
    param v = %2 {cuts="data:2@0", global=[8]} : f32[4]
    state s = %3 : bf16[8]
    %4 = cast(%1) {to="bf16"} : bf16[8]
    %5 = cast(%2) {to="bf16"} : bf16[4]
    %6 = all_gather(%5) {axis="data", dims=[0], size=2} : bf16[8]
    %7 = mul(%0, %4) : bf16[8]
    %8 = mul(%7, %6) : bf16[8]
    update %3 = %8
  })";

TEST(HoistWeights, TakesCastsThatFitIntoMemory) {
  Graph graph = test::parse(kCasts);
  PassContext context;
  EXPECT_EQ(test::count_ops(hoist_weights(graph, context).weights, "cast"), 2);
  EXPECT_EQ(test::count_ops(hoist_weights(graph, context).rest, "cast"), 0);
  context.options.memory_budget_gib = 1;
  HoistedWeights within_budget = hoist_weights(graph, context);
  EXPECT_EQ(test::count_ops(within_budget.weights, "cast"), 1) << "what is gathered";
  EXPECT_EQ(test::count_ops(within_budget.rest, "cast"), 1);
}

TEST(HoistWeights, LeavesWhatZero3GathersForEachPass) {
  PassContext context;
  context.zero = 3;
  HoistedWeights parts = hoist_weights(test::parse(kCasts), context);
  EXPECT_TRUE(parts.weights.nodes().empty());
  EXPECT_EQ(test::count_ops(parts.rest, "all_gather"), 1);
}

// %5 is read by what leads to eight bits and by something else, which makes it again. %14 to %16 are what recomputation
// does again.
constexpr const char* kEightBits = R"(graph micro_batch {
    input x = %0 : f8e4m3[16,16]
    param w = %1 : f32[16,16]
    state s = %2 : f32[16,16]
    state t = %3 : f32[16,16]
    %4 = cast(%1) {to="bf16"} : bf16[16,16]
    %5 = cast(%4) {to="f32"} : f32[16,16]
    %6 = reduce_max(%5) {dims=[0,1], keep=false} : f32[]
    %7 = constant() {dtype="f32", shape=[], value=448.0} : f32[]
    %8 = div(%7, %6) : f32[]
    %9 = mul(%5, %8) : f32[16,16]
    %10 = cast(%9) {to="f8e4m3"} : f8e4m3[16,16]
    %11 = transpose(%10) {perm=[1,0]} : f8e4m3[16,16]
    %12 = div(%6, %7) : f32[]
    %13 = mul(%5, %12) : f32[16,16]
    %14 = mul(%5, %8) #recompute : f32[16,16]
    %15 = cast(%14) {to="f8e4m3"} #recompute : f8e4m3[16,16]
    %16 = transpose(%15) {perm=[1,0]} #recompute : f8e4m3[16,16]
    %17 = cast(%11) {to="f32"} : f32[16,16]
    %18 = cast(%16) {to="f32"} : f32[16,16]
    %19 = add(%17, %18) : f32[16,16]
    update %2 = %19
    update %3 = %13
  })";

TEST(HoistWeights, TakesWhatLeadsToEightBits) {
  for (double budget : {0.0, 1.0}) {
    PassContext context;
    context.options.memory_budget_gib = budget;
    HoistedWeights parts = hoist_weights(test::parse(kEightBits), context);
    EXPECT_NE(parts.rest.find_argument("weights.w.f8e4m3.transpose"), kNoValue);
    EXPECT_NE(parts.rest.find_argument("weights.w.scale"), kNoValue) << "read beside them";
    EXPECT_EQ(parts.weights.updates().size(), 3u) << print(parts.weights);
    EXPECT_EQ(test::count_ops(parts.rest, "reduce_max"), 0);
    EXPECT_EQ(test::count_ops(parts.rest, "transpose"), 0);
    for (const Argument& argument : parts.rest.arguments())
      EXPECT_TRUE(argument.spec.role != Role::kWeights || num_elements(argument.spec.global) == 1 ||
                  parts.rest.dtype(argument.value) != DType::kF32)
          << argument.name << ": a wide copy of a parameter";
  }
}

TEST(HoistWeights, TakesEightBitsWithTheirScale) {
  Graph graph = test::parse(R"(graph micro_batch {
    param w = %0 : f32[16,32]
    state s = %1 : f32[32,16]
    %2 = cast(%0) {to="bf16"} : bf16[16,32]
    %3, %4, %5 = float8_weights(%2) {stored=[3]} : f8e4m3[16,32], f8e4m3[32,16], f32[]
    %6 = cast(%3) {to="f32"} #backward : f32[16,32]
    %7 = reshape(%6) {shape=[32,16]} #backward : f32[32,16]
    %8 = cast(%4) {to="f32"} : f32[32,16]
    %9 = add(%7, %8) #backward : f32[32,16]
    %10 = mul(%9, %5) #backward : f32[32,16]
    update %1 = %10
  })");
  HoistedWeights parts = hoist_weights(graph, {});
  for (const char* name : {"weights.w.f8e4m3", "weights.w.f8e4m3.transpose", "weights.w.scale"})
    EXPECT_NE(parts.rest.find_argument(name), kNoValue) << name;
  EXPECT_EQ(parts.weights.updates().size(), 3u) << print(parts.weights);
  EXPECT_EQ(test::count_ops(parts.rest, "float8_weights"), 0);
}

TEST(HoistWeights, LeavesWhatIsComputed) {
  Graph graph = test::parse(R"(graph micro_batch {
    param w = %0 : f32[8]
    state s = %1 : bf16[8]
    %2 = neg(%0) : f32[8]
    %3 = cast(%2) {to="bf16"} : bf16[8]
    update %1 = %3
  })");
  EXPECT_TRUE(hoist_weights(graph, {}).weights.nodes().empty());
}

TEST(HoistWeights, LeavesWhatIsMadeOfConstants) {
  Graph graph = test::parse(R"(graph micro_batch {
    param w = %0 : f32[8]
    state s = %1 : i32[8]
    %2 = constant() {dtype="f32", shape=[8], value=2.0} : f32[8]
    %3 = cast(%2) {to="i32"} : i32[8]
    update %1 = %3
  })");
  HoistedWeights parts = hoist_weights(graph, {});
  EXPECT_TRUE(parts.weights.nodes().empty());
  EXPECT_EQ(test::count_ops(parts.rest, "cast"), 1);
}

// One state instead of one for each; what something else reads as well has a state of its own, too.
TEST(HoistWeights, TakesCopiesSideBySide) {
  std::string text = R"(graph micro_batch {
    param q = %0 : f32[4,8]
    param k = %1 {cuts="data:2@0", global=[2,8]} : f32[1,8]
    state s = %2 : bf16[6,8]
    state t = %3 : bf16[4,8]
    %4 = cast(%0) {to="bf16"} : bf16[4,8]
    %5 = cast(%1) {to="bf16"} : bf16[1,8]
    %6 = all_gather(%5) {axis="data", dims=[0], size=2} : bf16[2,8]
    %7 = concat(%4, %6) {dim=0} : bf16[6,8]
    %8 = exp(%7) : bf16[6,8]
    %9 = exp(%4) : bf16[4,8]
    update %2 = %8
    update %3 = %9
  })";
  HoistedWeights parts = hoist_weights(test::parse(text), {});
  EXPECT_EQ(print(parts.rest), canonical(R"(graph micro_batch {
    state s = %0 : bf16[6,8]
    state t = %1 : bf16[4,8]
    state weights.q.cast = %2 {role="weights"} : bf16[4,8]
    state weights.q.cast+k.cast.all_gather.concat = %3 {role="weights"} : bf16[6,8]
    %4 = exp(%3) : bf16[6,8]
    %5 = exp(%2) : bf16[4,8]
    update %0 = %4
    update %1 = %5
  })"));
  EXPECT_EQ(test::count_ops(parts.weights, "concat"), 1);
  EXPECT_EQ(parts.weights.updates().size(), 2u) << print(parts.weights);
  PassContext within_budget;
  within_budget.options.memory_budget_gib = 1;
  parts = hoist_weights(test::parse(text), within_budget);
  EXPECT_EQ(test::count_ops(parts.rest, "concat"), 1) << "it may be made again for the backward pass";
  EXPECT_NE(parts.rest.find_argument("weights.k.cast.all_gather"), kNoValue);
}

// Of columns, or in f32, they would be copies for these programs alone.
TEST(HoistWeights, LeavesOtherConcats) {
  for (const char* concat : {"concat(%3, %3) {dim=1} : bf16[2,4]", "concat(%0, %0) {dim=0} : f32[4,2]"}) {
    std::string type = std::string(concat).substr(std::string(concat).find(" : "));
    HoistedWeights parts =
        hoist_weights(test::parse("graph g {\n param w = %0 : f32[2,2]\n state s = %1" + type +
                                  "\n input x = %2 : f32[]\n %3 = cast(%0) {to=\"bf16\"} : bf16[2,2]\n %4 = " + concat +
                                  "\n update %1 = %4\n}"),
                      {});
    EXPECT_EQ(test::count_ops(parts.rest, "concat"), 1) << print(parts.rest);
  }
}

TEST(HoistWeights, NamesThoseOfAChunk) {
  HoistedWeights parts = hoist_weights(test::parse(kCasts), {}, ".2");
  EXPECT_EQ(parts.weights.name(), "weights.2");
  EXPECT_NE(parts.rest.find_argument("weights.2.w.cast"), kNoValue);
}

}  // namespace
}  // namespace tokamak
