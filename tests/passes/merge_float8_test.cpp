#include "passes/merge_float8.h"

#include "graph/text.h"
#include "ops/float8_weights.h"
#include "passes/merge_casts.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

using test::parse;

// Two weights of products, of which something else reads the first in bf16, too.
Graph two_weights(std::string_view last = "%13 = cast(%9) {to=\"f32\"} #backward : f32[16,32]") {
  return parse(fmt::format(R"(graph g {{
    param v = %0 : f32[48,16]
    param w = %1 : f32[16,32]
    input x = %2 : bf16[16,48]
    %3 = cast(%0) {{to="bf16"}} : bf16[48,16]
    %4 = matmul(%2, %3) {{trans_a=false, trans_b=false}} : bf16[16,16]
    %5, %6 = float8_weights(%3) {{stored=[2]}} : f8e4m3[16,48], f32[]
    %7 = cast(%1) {{to="bf16"}} : bf16[16,32]
    %8 = reshape(%7) {{shape=[32,16]}} : bf16[32,16]
    %9, %10, %11 = float8_weights(%7) {{stored=[3]}} : f8e4m3[16,32], f8e4m3[32,16], f32[]
    %12 = cast(%5) {{to="f32"}} : f32[16,48]
    {}
    result a = %4
    result b = %12
    result c = %13
    result d = %11
  }})",
                           last));
}

// The copy in bf16 that is there is read, and none is made for eight bits alone.
TEST(MergeFloat8, MakesOneOfAllWeights) {
  Graph before = two_weights(), after = before;
  EXPECT_FALSE(merge_casts(after, {})) << "of the only other one";
  EXPECT_TRUE(merge_float8(after, {}));
  verify(after);
  ASSERT_EQ(test::count_ops(after, "float8_weights"), 1) << print(after);
  for (const Node& node : after.nodes())
    if (node.op == &op::float8_weights) {
      EXPECT_EQ(after.dtype(node.inputs[0]), DType::kBF16);
      EXPECT_EQ(node.inputs[1], after.find_argument("w"));
      EXPECT_EQ(node.attrs.get_ints("stored"), (std::vector<int64_t>{2, 3}));
    }
  test::expect_same_meaning(before, after);
  EXPECT_FALSE(merge_float8(after, {})) << "merged twice";
}

TEST(MergeFloat8, ReadsAParameterWhoseCopyIsMadeLater) {
  Graph before = two_weights("%13 = cast(%8) {to=\"f32\"} #backward : f32[32,16]"), after = before;
  EXPECT_TRUE(merge_float8(after, {}));
  for (const Node& node : after.nodes())
    if (node.op == &op::float8_weights) EXPECT_EQ(node.inputs[1], after.find_argument("w"));
  test::expect_same_meaning(before, after);
}

TEST(MergeFloat8, KnowsWhichCopiesNothingElseNeeds) {
  Graph graph = two_weights();
  std::vector<bool> found = find_copies_for_float8(graph);
  for (size_t v = 0; v < found.size(); ++v) EXPECT_EQ(found[v], graph.producer(ValueId(v)) == 3) << v;
  Graph read = two_weights("%13 = cast(%8) {to=\"f32\"} #backward : f32[32,16]");
  for (bool of_value : find_copies_for_float8(read)) EXPECT_FALSE(of_value) << "a view is read";
}

// Where copies would live longer, or are made again.
TEST(MergeFloat8, LeavesOthersAlone) {
  Graph forward = two_weights("%13 = cast(%9) {to=\"f32\"} : f32[16,32]");
  EXPECT_FALSE(merge_float8(forward, {})) << "there is no backward pass";
  Graph again = parse(R"(graph g {
    param w = %0 : f32[16,32]
    %1 = cast(%0) {to="bf16"} : bf16[16,32]
    %2 = all_gather(%1) {axis="data", dims=[0], size=2} : bf16[32,32]
    %3, %4 = float8_weights(%2) {stored=[1]} : f8e4m3[32,32], f32[]
    %5, %6 = float8_weights(%1) {stored=[1]} #backward #recompute : f8e4m3[16,32], f32[]
    result a = %4
    result b = %6
  })");
  EXPECT_FALSE(merge_float8(again, {})) << "ranks gather it, or it is made again";
}

// Scales that follow from parameters, from what a merged node gives, and from copies that stand before it; not those of
// what ranks gather.
TEST(MergeFloat8, MakesScalesOfActivationsTogether) {
  Graph before = parse(R"(graph g {
    param gain = %0 : f32[16]
    param w = %1 : f32[16,32]
    param b = %2 : f32[32]
    %3 = cast(%2) {to="bf16"} : bf16[32]
    %4, %5 = float8_scales(%0) {has=[1], widths=[16]} : f32[], f32[]
    %6 = cast(%1) {to="bf16"} : bf16[16,32]
    %7, %8, %9 = float8_weights(%6) {stored=[6]} : f8e4m3[32,16], f32[], f32[]
    %10, %11 = float8_scales(%0, %9, %3) {has=[13], widths=[16]} : f32[], f32[]
    %12 = all_gather(%0) {axis="data", dims=[0], size=1} : f32[16]
    %13, %14 = float8_scales(%12) {has=[1], widths=[16]} : f32[], f32[]
    %15 = add(%4, %10) #backward : f32[]
    %16 = add(%11, %13) #backward : f32[]
    result a = %15
    result b = %16
    result c = %8
  })"),
        after = before;
  EXPECT_TRUE(merge_float8(after, {}));
  verify(after);
  EXPECT_EQ(test::count_ops(after, "float8_scales"), 2) << print(after);
  EXPECT_FALSE(merge_float8(after, {})) << "merged twice";
}

// As the program of a step that makes all weights has it.
TEST(MergeFloat8, MergesWhatIsKept) {
  Graph before = parse(R"(graph weights {
    param v = %0 : f32[16,32]
    param w = %1 : f32[16,16]
    state a = %2 : f8e4m3[32,16]
    state b = %3 : f8e4m3[16,16]
    %4 = cast(%0) {to="bf16"} : bf16[16,32]
    %5, %6 = float8_weights(%4) {stored=[2]} : f8e4m3[32,16], f32[]
    %7 = cast(%1) {to="bf16"} : bf16[16,16]
    %8, %9 = float8_weights(%7) {stored=[1]} : f8e4m3[16,16], f32[]
    update %2 = %5
    update %3 = %8
  })");
  Graph after = before;
  EXPECT_TRUE(merge_float8(after, {}));
  EXPECT_EQ(test::count_ops(after, "float8_weights"), 1);
  test::expect_same_meaning(before, after);
}

}  // namespace
}  // namespace tokamak
