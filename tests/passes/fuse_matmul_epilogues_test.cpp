// What matmuls take into their group on targets that can do more than bias and GELU.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "graph/single_node.h"
#include "model/gpt.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

PassContext able() {
  PassContext context;
  context.target.matmul_gelu_aux = context.target.matmul_gelu_grad = context.target.matmul_accumulate = true;
  return context;
}

// The graph after form_groups and the part of fuse that is about matmuls.
Graph with_epilogues(std::string_view text, const PassContext& context = able()) {
  Graph before = test::parse(text), after = before;
  form_groups(after, context);
  fuse_matmul_epilogues(after, context);
  verify(after);
  test::expect_same_meaning(before, after);
  return after;
}

// The op names of the one matmul group's body, its results last.
std::string form_of(const Graph& graph) {
  std::string form;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "group" || node.attrs.get_string("kind") != "matmul") continue;
    form += form.empty() ? "" : " | ";
    for (const Node& inner : node.body->nodes()) form += std::string(inner.op->name) + " ";
    form += fmt::format("-> {}", node.outputs.size());
  }
  return form;
}

constexpr const char* kForward = R"(graph g {
  input x = %0 : f32[2,3,4]
  param w = %1 : f32[4,5]
  param b = %2 : f32[5]
  %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,3,5]
  %4 = add(%3, %2) : f32[2,3,5]
  %5 = gelu(%4) : f32[2,3,5]
  %6 = sqrt(%4) #backward : f32[2,3,5]
  result y = %5
  result z = %6
})";

TEST(MatmulEpilogues, KeepWhatGeluIsAppliedTo) {
  Graph after = with_epilogues(kForward);
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,3,4]
    param w = %1 : f32[4,5]
    param b = %2 : f32[5]
    %3, %4 = group(%0, %1, %2) {kind="matmul"} : f32[2,3,5], f32[2,3,5] {
      graph body {
        input a0 = %0 : f32[2,3,4]
        input a1 = %1 : f32[4,5]
        input a2 = %2 : f32[5]
        %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,3,5]
        %4 = add(%3, %2) : f32[2,3,5]
        %5 = gelu(%4) : f32[2,3,5]
        result r0 = %4
        result r1 = %5
      }
    }
    %5 = group(%3) {kind="flat"} #backward : f32[2,3,5] {
      graph body {
        input a0 = %0 : f32[2,3,5]
        %1 = reshape(%0) {shape=[6,5]} : f32[6,5]
        %2 = sqrt(%1) : f32[6,5]
        %3 = reshape(%2) {shape=[2,3,5]} : f32[2,3,5]
        result r0 = %3
      }
    }
    result y = %4
    result z = %5
  })"));
  EXPECT_EQ(form_of(with_epilogues(kForward, {})), "matmul add -> 1");
}

// What was measured to cost more than it saves: then the next simpler form.
TEST(MatmulEpilogues, LeaveOutFormsThatAreRefused) {
  PassContext context = able();
  for (const char* expected : {"matmul add -> 1", ""}) {
    Graph graph = with_epilogues(kForward, context);
    context.target.plain_matmuls.insert(kernel_key(graph, graph.nodes()[0]));
    EXPECT_EQ(form_of(with_epilogues(kForward, context)), expected);
  }
}

// A GELU that is computed again in the backward pass stays there.
TEST(MatmulEpilogues, LeaveRecomputedGeluWhereItIs) {
  std::string text = kForward;
  text.replace(text.find("gelu(%4) :"), 10, "gelu(%4) #backward #recompute :");
  EXPECT_EQ(form_of(with_epilogues(text)), "matmul add -> 1");
}

constexpr const char* kBackward = R"(graph g {
  input pre = %0 : f32[3,5]
  input dy = %1 : f32[3,4]
  param w = %2 : f32[5,4]
  %3 = matmul(%1, %2) {trans_a=false, trans_b=true} : f32[3,5]
  %4 = gelu_grad(%0, %3) : f32[3,5]
  result dx = %4
})";

TEST(MatmulEpilogues, TakeTheDerivativeOfGelu) {
  EXPECT_EQ(form_of(with_epilogues(kBackward)), "matmul gelu_grad -> 1");
  EXPECT_EQ(form_of(with_epilogues(kBackward, {})), "");
  std::string read = kBackward, swapped = kBackward;
  read.insert(read.rfind('}'), "  result dy = %3\n");
  EXPECT_EQ(form_of(with_epilogues(read)), "");
  swapped.replace(swapped.find("gelu_grad(%0, %3)"), 17, "gelu_grad(%3, %0)");
  EXPECT_EQ(form_of(with_epilogues(swapped)), "");
}

std::string accumulation(const std::string& dtype, const std::string& sum, const std::string& update) {
  return fmt::format(R"(graph g {{
    input x = %0 : {0}[3,4]
    input dy = %1 : {0}[3,5]
    state grad = %2 : f32[4,5]
    %3 = matmul(%0, %1) {{trans_a=true, trans_b=false}} : {0}[4,5]
    %4 = exp(%0) : {0}[3,4]
    {1}
    result y = %4
    update %2 = {2}
  }})",
                     dtype, sum, update);
}

TEST(MatmulEpilogues, AddOntoAGradientAtTheMatmulsPlace) {
  for (const char* dtype : {"f32", "bf16"}) {
    Graph after = with_epilogues(accumulation(dtype, "%5 = add(%2, %3) : f32[4,5]", "%5"));
    EXPECT_EQ(form_of(after), std::string(dtype) == "f32" ? "matmul add -> 1" : "matmul cast add -> 1");
    EXPECT_TRUE(after.nodes()[0].body && after.nodes()[0].attrs.get_string("kind") == "matmul") << print(after);
    EXPECT_EQ(form_of(with_epilogues(accumulation(dtype, "%5 = add(%2, %3) : f32[4,5]", "%5"), {})), "");
  }
  const char* cast_first = "%5 = cast(%3) {to=\"f32\"} : f32[4,5] %6 = add(%5, %2) : f32[4,5]";
  EXPECT_EQ(form_of(with_epilogues(accumulation("bf16", cast_first, "%6"))), "matmul cast add -> 1");
}

TEST(MatmulEpilogues, AddOntoNothingThatStays) {
  std::string text = accumulation("f32", "%5 = add(%2, %3) : f32[4,5]", "%2");
  text.replace(text.find("update %2 = %2"), 14, "result sum = %5");
  EXPECT_EQ(form_of(with_epilogues(text)), "");
}

TEST(MatmulEpilogues, GiveF32WhereNoGroupWouldReadTheProduct) {
  const char* widened = "%5 = cast(%3) {to=\"f32\"} : f32[4,5]";
  EXPECT_EQ(form_of(with_epilogues(accumulation("bf16", widened, "%5"))), "matmul cast -> 1");
  EXPECT_EQ(form_of(with_epilogues(accumulation("bf16", widened, "%5"), {})), "");
  std::string grouped = std::string(widened) + " %6 = sqrt(%5) : f32[4,5]";
  EXPECT_EQ(form_of(with_epilogues(accumulation("bf16", grouped, "%6"))), "");
}

// A micro-batch of GPT-2 in bf16: every matrix's gradient is added up by its matmul, but for the tied one.
TEST(MatmulEpilogues, OfAWholeMicroBatch) {
  PassContext context = able();
  context.options.precision = "bf16";
  ModelConfig model{.layers = 2, .heads = 2, .width = 4, .context = 6, .vocab = 11};
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {2, 6}}), targets = g.input("targets", {DType::kI32, {2, 6}});
  graph.add_result("loss", gpt_loss(g, model, tokens, targets, kNoValue));
  run_passes(graph, Stage::kForward, context);
  Gradients gradients;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  gradients.grads = differentiate(g, graph.find_result("loss"), gradients.parameters);
  append_accumulation(g, gradients);
  Graph before = graph;
  run_passes(graph, Stage::kStep, context);
  std::map<std::string, int> forms;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "group" || node.attrs.get_string("kind") != "matmul") continue;
    std::string form;
    for (const Node& inner : node.body->nodes()) form += std::string(inner.op->name) + " ";
    ++forms[form];
  }
  EXPECT_EQ(forms["matmul cast add "], 2 * 4);
  EXPECT_EQ(forms["matmul add gelu "], 2);
  EXPECT_EQ(forms["matmul gelu_grad "], 2);
  test::expect_same_meaning(before, graph, 0.1);
}

}  // namespace
}  // namespace tokamak
