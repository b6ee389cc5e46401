#include "passes/merge_casts.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/model_config.h"
#include "config/optimizer_config.h"
#include "model/gpt.h"
#include "passes/live_bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <cstring>

namespace tokamak {
namespace {

using test::canonical;
using test::parse;

// Two casts of matrices with a matmul after each; `%0`, `%1` are what `first` and `second` say they are.
std::string two_casts(const std::string& first, const std::string& second, const std::string& tag = "") {
  return "graph g {\n" + first + " = %0 : f32[4,4]\n" + second + R"( = %1 : f32[4,4]
    input x = %2 : bf16[3,4]
    %3 = cast(%0) {to="bf16"} : bf16[4,4]
    %4 = matmul(%2, %3) {trans_a=false, trans_b=false} : bf16[3,4]
    %5 = cast(%1) {to="bf16"})" +
         tag + R"( : bf16[4,4]
    %6 = matmul(%4, %5) {trans_a=false, trans_b=false} : bf16[3,4]
    %7 = exp(%6) #backward : bf16[3,4]
    result y = %7
  })";
}

void expect_unchanged(const std::string& text) {
  Graph graph = parse(text);
  EXPECT_FALSE(merge_casts(graph, {}));
  EXPECT_EQ(print(graph), canonical(text));
}

TEST(MergeCasts, MakesOneOfTheCastsOfParameters) {
  Graph before = parse(two_casts("param p", "param q")), after = before;
  EXPECT_TRUE(merge_casts(after, {}));
  verify(after);
  EXPECT_EQ(print(after), canonical(R"(graph g {
    param p = %0 : f32[4,4]
    param q = %1 : f32[4,4]
    input x = %2 : bf16[3,4]
    %3, %4 = multi_cast(%0, %1) {to="bf16"} : bf16[4,4], bf16[4,4]
    %5 = matmul(%2, %3) {trans_a=false, trans_b=false} : bf16[3,4]
    %6 = matmul(%5, %4) {trans_a=false, trans_b=false} : bf16[3,4]
    %7 = exp(%6) #backward : bf16[3,4]
    result y = %7
  })"));
  test::expect_same_meaning(before, after);
}

TEST(MergeCasts, MakesOneForEachGatheringOfParts) {
  std::string text = R"(graph g {
    param p = %0 {cuts="data:2@0", global=[8,4]} : f32[4,4]
    param q = %1 {cuts="data:2@0", global=[8,4]} : f32[4,4]
    %2 = cast(%0) {to="bf16"} : bf16[4,4]
    %3 = cast(%1) {to="bf16"} : bf16[4,4]
    %4, %5 = all_gather(%2, %3) {axis="data", dims=[0,0], size=2} : bf16[8,4], bf16[8,4]
    %6 = cast(%0) {to="bf16"} #backward : bf16[4,4]
    %7 = cast(%1) {to="bf16"} #backward : bf16[4,4]
    %8, %9 = all_gather(%6, %7) {axis="data", dims=[0,0], size=2} #backward : bf16[8,4], bf16[8,4]
    result a = %4
    result b = %5
    result c = %8
    result d = %9
  })";
  Graph graph = parse(text);
  EXPECT_TRUE(merge_casts(graph, {}));
  EXPECT_EQ(print(graph), canonical(R"(graph g {
    param p = %0 {cuts="data:2@0", global=[8,4]} : f32[4,4]
    param q = %1 {cuts="data:2@0", global=[8,4]} : f32[4,4]
    %2, %3 = multi_cast(%0, %1) {to="bf16"} : bf16[4,4], bf16[4,4]
    %4, %5 = all_gather(%2, %3) {axis="data", dims=[0,0], size=2} : bf16[8,4], bf16[8,4]
    %6, %7 = multi_cast(%0, %1) {to="bf16"} #backward : bf16[4,4], bf16[4,4]
    %8, %9 = all_gather(%6, %7) {axis="data", dims=[0,0], size=2} #backward : bf16[8,4], bf16[8,4]
    result a = %4
    result b = %5
    result c = %8
    result d = %9
  })"));
}

// Of p there are two shapes but one copy; to f16 there is one cast, which stays; the parameters' updates come later.
TEST(MergeCasts, LooksThroughViewsAndKeepsTypesApart) {
  Graph before = parse(R"(graph g {
    param p = %0 : f32[2,6]
    param q = %1 : f32[3]
    %2 = reshape(%0) {shape=[12]} : f32[12]
    %3 = cast(%2) {to="bf16"} : bf16[12]
    %4 = cast(%0) {to="bf16"} : bf16[2,6]
    %5 = cast(%0) {to="f16"} : f16[2,6]
    %6 = exp(%1) #backward : f32[3]
    %7 = cast(%1) {to="bf16"} : bf16[3]
    result a = %3
    result b = %4
    result c = %5
    result d = %7
    update %1 = %6
  })");
  Graph after = before;
  EXPECT_TRUE(merge_casts(after, {}));
  verify(after);
  EXPECT_EQ(test::count_ops(after, "multi_cast"), 1) << print(after);
  EXPECT_EQ(test::count_ops(after, "cast"), 1) << print(after);
  EXPECT_EQ(print(after, after.nodes()[1]), R"(%3, %4 = multi_cast(%0, %1) {to="bf16"} : bf16[2,6], bf16[3])");
  test::expect_same_meaning(before, after);
}

TEST(MergeCasts, LeavesActivationsAndStatesAlone) {
  expect_unchanged(two_casts("param p", "input q"));
  expect_unchanged(two_casts("param p", "state q"));
  expect_unchanged(R"(graph g {
    param p = %0 : f32[4]
    param q = %1 : f32[4]
    %2 = exp(%0) #backward : f32[4]
    %3 = cast(%2) {to="bf16"} : bf16[4]
    %4 = cast(%1) {to="bf16"} : bf16[4]
    result y = %3
    result z = %4
  })");
}

TEST(MergeCasts, LeavesCastsAloneThatWouldLiveLonger) {
  expect_unchanged(two_casts("param p", "param q", " #recompute"));
  expect_unchanged(two_casts("param p", "param q", " #backward"));
  std::string forward = two_casts("param p", "param q");
  forward.erase(forward.find(" #backward"), 10);
  expect_unchanged(forward);
}

TEST(MergeCasts, MergesForAGatherWithoutABackwardPass) {
  Graph graph = parse(R"(graph g {
    param p = %0 : f32[4,4]
    param q = %1 : f32[4,4]
    %2 = cast(%0) {to="bf16"} : bf16[4,4]
    %3 = cast(%1) {to="bf16"} : bf16[4,4]
    %4, %5 = all_gather(%2, %3) {axis="data", dims=[0,0], size=2} : bf16[8,4], bf16[8,4]
    result y = %4
    result z = %5
  })");
  EXPECT_TRUE(merge_casts(graph, {}));
  EXPECT_EQ(test::count_ops(graph, "multi_cast"), 1);
  EXPECT_EQ(test::count_ops(graph, "cast"), 0);
}

// As the program that makes weights for all micro-batches does.
TEST(MergeCasts, MergesWhatIsKeptWithoutABackwardPass) {
  Graph graph = parse(R"(graph weights {
    param p = %0 : f32[4,4]
    param q = %1 : f32[4]
    state weights.0 = %2 : bf16[4,4]
    state weights.1 = %3 : bf16[4]
    %4 = cast(%0) {to="bf16"} : bf16[4,4]
    %5 = cast(%1) {to="bf16"} : bf16[4]
    update %2 = %4
    update %3 = %5
  })");
  EXPECT_TRUE(merge_casts(graph, {}));
  EXPECT_EQ(test::count_ops(graph, "multi_cast"), 1);
  EXPECT_EQ(test::count_ops(graph, "cast"), 0);
}

// The cast to f32 of a parameter in a low type does not lower anything.
TEST(MergeCasts, LeavesWideningCastsAlone) {
  expect_unchanged(R"(graph g {
    param p = %0 : bf16[4]
    param q = %1 : bf16[4]
    %2 = cast(%0) {to="f32"} : f32[4]
    %3 = cast(%1) {to="f32"} : f32[4]
    %4 = add(%2, %3) #backward : f32[4]
    result y = %4
  })");
}

// Of q, k and v, and a fourth; `extra` stands before the results.
std::string side_by_side(const std::string& extra = "", const std::string& tag = "") {
  return R"(graph g {
    input x = %0 : bf16[3,4]
    param q = %1 : f32[4,4]
    param k = %2 : f32[2,4]
    param v = %3 : f32[8]
    param o = %4 : f32[4,4]
    %5 = cast(%1) {to="bf16"} : bf16[4,4]
    %6 = cast(%2) {to="bf16"} : bf16[2,4]
    %7 = reshape(%3) {shape=[2,4]} : f32[2,4]
    %8 = cast(%7) {to="bf16"} : bf16[2,4]
    %9 = cast(%4) {to="bf16"} : bf16[4,4]
    %10 = matmul(%0, %9) {trans_a=false, trans_b=true} : bf16[3,4]
    %11 = concat(%5, %6, %8) {dim=0})" +
         tag + R"( : bf16[8,4]
    %12 = matmul(%10, %11) {trans_a=false, trans_b=true} #backward : bf16[3,8]
)" + extra +
         R"(    result y = %12
  })";
}

TEST(MergeCasts, WritesSideBySideWhatIsReadSo) {
  Graph before = parse(side_by_side()), after = before;
  EXPECT_TRUE(merge_casts(after, {}));
  verify(after);
  std::string text = print(after);
  EXPECT_NE(text.find(R"(= multi_cast(%1, %2, %5, %4) {joins=[3,1], to="bf16"} : bf16[8,4], bf16[4,4])"), text.npos)
      << text;
  EXPECT_EQ(test::count_ops(after, "cast") + test::count_ops(after, "concat"), 0) << text;
  test::expect_same_meaning(before, after);
}

TEST(MergeCasts, WritesSideBySideWhatTheBackwardPassReads) {
  Graph before = parse(side_by_side("", " #backward")), after = before;
  EXPECT_TRUE(merge_casts(after, {}));
  EXPECT_EQ(test::count_ops(after, "concat"), 0) << print(after);
  EXPECT_EQ(test::count_ops(after, "multi_cast"), 1);
  test::expect_same_meaning(before, after);
}

// Copies that do not live for the whole step are made where they were: of what is computed again, or of a graph without
// a backward pass.
TEST(MergeCasts, WritesSideBySideForOneProductAlone) {
  for (const char* tag : {" #backward", " #recompute", " #backward #recompute"}) {
    std::string text = side_by_side();
    for (size_t at = 0; (at = text.find(R"({to="bf16"} :)", at)) != text.npos; at += 20) text.insert(at + 11, tag);
    Graph before = parse(text), after = before;
    EXPECT_TRUE(merge_casts(after, {}));
    EXPECT_EQ(test::count_ops(after, "cast"), 1) << "of the fourth, which is not put side by side\n" << print(after);
    EXPECT_EQ(test::count_ops(after, "concat"), 0);
    EXPECT_NE(print(after).find(R"({joins=[3], to="bf16"})" + std::string(tag)), std::string::npos) << print(after);
    test::expect_same_meaning(before, after);
  }
  std::string forward = side_by_side();
  forward.erase(forward.find(" #backward"), 10);
  Graph after = parse(forward);
  EXPECT_TRUE(merge_casts(after, {}));
  EXPECT_EQ(test::count_ops(after, "cast"), 1) << print(after);
}

TEST(MergeCasts, LeavesRowsSideBySideOfWhichOneIsReadElsewhere) {
  for (const char* reader : {"    result apart = %6\n", "    %13 = exp(%6) : bf16[2,4]\n    result apart = %13\n",
                             "    %13 = concat(%5, %6) {dim=0} : bf16[6,4]\n    result apart = %13\n"}) {
    Graph before = parse(side_by_side(reader)), after = before;
    EXPECT_TRUE(merge_casts(after, {}));
    verify(after);
    EXPECT_GE(test::count_ops(after, "concat"), 1) << print(after);
    EXPECT_EQ(after.nodes()[0].op->name, "multi_cast");
    EXPECT_EQ(after.nodes()[0].outputs.size(), 4u) << print(after);
    test::expect_same_meaning(before, after);
  }
}

TEST(MergeCasts, LeavesColumnsAndActivationsSideBySide) {
  for (auto [from, to] : {std::pair{"concat(%5, %6, %8) {dim=0} : bf16[8,4]", "concat(%5, %9) {dim=1} : bf16[4,8]"},
                          {"concat(%5, %6, %8) {dim=0} : bf16[8,4]", "concat(%5, %10) {dim=0} : bf16[7,4]"}}) {
    std::string text = side_by_side();
    text.replace(text.find(from), std::strlen(from), to);
    text.replace(text.find("    %12 ="), text.find("    result y") - text.find("    %12 ="),
                 "    %12 = exp(%11) #backward : " + std::string(to + std::strlen(to) - 9) + "\n");
    Graph before = parse(text), after = before;
    EXPECT_TRUE(merge_casts(after, {}));
    EXPECT_EQ(test::count_ops(after, "concat"), 1) << print(after);
    test::expect_same_meaning(before, after);
  }
}

// As the program that makes weights for all micro-batches does.
TEST(MergeCasts, WritesSideBySideWhatIsKept) {
  Graph graph = parse(R"(graph weights {
    param p = %0 : f32[4,4]
    param q = %1 : f32[2,4]
    state weights.0 = %2 : bf16[6,4]
    %3 = cast(%0) {to="bf16"} : bf16[4,4]
    %4 = cast(%1) {to="bf16"} : bf16[2,4]
    %5 = concat(%3, %4) {dim=0} : bf16[6,4]
    update %2 = %5
  })");
  EXPECT_TRUE(merge_casts(graph, {}));
  ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
  EXPECT_EQ(print(graph, graph.nodes()[0]), R"(%3 = multi_cast(%0, %1) {joins=[2], to="bf16"} : bf16[6,4])");
}

Graph step_of_gpt(const PassContext& context) {
  ModelConfig model{.layers = 3, .heads = 2, .width = 16, .context = 8, .vocab = 17, .dropout = 0};
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {3, 8}}), targets = g.input("targets", {DType::kI32, {3, 8}});
  graph.add_result("loss", gpt_loss(g, model, {tokens, targets}));
  run_passes(graph, PassStage::kForward, context);
  Gradients gradients;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  gradients.grads = differentiate(g, graph.find_result("loss"), gradients.parameters);
  append_update(g, gradients, OptimizerConfig());
  run_passes(graph, PassStage::kStep, context);
  return graph;
}

PassContext context_of(Precision precision, bool fuse = true) {
  PassContext context;
  context.options.precision = precision;
  context.options.disable_passes = {"pad_vocab"};
  if (!fuse) context.options.disable_passes.emplace_back("fuse");
  return context;
}

// The copies of all parameters together are the most that it may cost.
TEST(MergeCasts, CastsAllWeightsOfAStepAtOnce) {
  for (Precision precision : {Precision::kBf16, Precision::kFp16}) {
    PassContext merged = context_of(precision), apart = merged;
    apart.options.disable_passes.emplace_back("merge_casts");
    Graph after = step_of_gpt(merged), before = step_of_gpt(apart);
    ASSERT_EQ(test::count_ops(after, "multi_cast"), 1) << print(after);
    EXPECT_GE(after.nodes()[0].inputs.size() + after.nodes()[1].inputs.size(), 3u * 8);
    EXPECT_LE(after.nodes().size() + 3 * 8, before.nodes().size() + 1) << print(after);
    int64_t copies = 0;
    for (const Node& node : after.nodes())
      if (node.op->name == "multi_cast")
        for (ValueId output : node.outputs) copies += num_bytes(after.type(output));
    EXPECT_LE(peak_live_bytes(after), peak_live_bytes(before) + copies);
  }
}

TEST(MergeCasts, IsPartOfFusion) {
  EXPECT_EQ(test::count_ops(step_of_gpt(context_of(Precision::kBf16, false)), "multi_cast"), 0);
  EXPECT_EQ(test::count_ops(step_of_gpt(context_of(Precision::kFp32)), "multi_cast"), 0);
}

}  // namespace
}  // namespace tokamak
