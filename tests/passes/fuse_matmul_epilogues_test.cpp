// What matmuls take into their group on targets that can do more than bias and GELU.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/model_config.h"
#include "graph/builder.h"
#include "graph/single_node.h"
#include "model/gpt.h"
#include "ops/group.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

PassContext able() {
  PassContext context;
  context.target.matmul_argument = context.target.matmul_operand = context.target.matmul_accumulate = true;
  context.target.matmul_operand_sums = true;
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
    if (node.op != &op::fused_matmul) continue;
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
    %3, %4 = fused_matmul(%0, %1, %2) : f32[2,3,5], f32[2,3,5] {
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
    %5 = flat(%3) #backward : f32[2,3,5] {
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

// The forms that are left when one after the other is measured to cost more than it saves.
std::vector<std::string> simpler_forms(const char* text) {
  PassContext context = able();
  std::vector<std::string> forms;
  do {
    Graph graph = with_epilogues(text, context);
    forms.push_back(form_of(graph));
    context.tuning.slow_forms.insert(kernel_key(graph, graph.nodes()[0]));
  } while (!forms.back().empty() && forms.size() < 5);
  return forms;
}

TEST(MatmulEpilogues, LeaveOutFormsThatAreRefused) {
  EXPECT_EQ(simpler_forms(kForward), (std::vector<std::string>{"matmul add gelu -> 2", "matmul add -> 1", ""}));
}

TEST(MatmulEpilogues, LeaveOutFormsWithoutAKernel) {
  PassContext context = able();
  context.kernels = test::fake_kernels({.takes_matmul = [](const Graph& graph, const Node& group) {
    EXPECT_EQ(graph.shape(group.inputs[2]), Shape{5});
    return group.outputs.size() == 1;
  }});
  EXPECT_EQ(form_of(with_epilogues(kForward, context)), "matmul add -> 1");
  context.kernels = test::fake_kernels({.takes_matmul = [](const Graph&, const Node&) { return false; }});
  EXPECT_EQ(form_of(with_epilogues(kForward, context)), "");
}

// As in the forward pass when the sum is computed again: with the same kernel in both passes it has the same bits.
TEST(MatmulEpilogues, StoreWhatOnlyGeluReadsWhereThereIsNoOtherKernel) {
  std::string text = kForward;
  text.replace(text.find("sqrt(%4) #backward"), 18, "sqrt(%5)");
  EXPECT_EQ(form_of(with_epilogues(text)), "matmul add gelu -> 1");
  PassContext context = able();
  context.target.matmul_function = false;
  EXPECT_EQ(form_of(with_epilogues(text, context)), "matmul add gelu -> 2");
}

// A GELU that is computed again in the backward pass stays there.
TEST(MatmulEpilogues, LeaveRecomputedGeluWhereItIs) {
  std::string text = kForward;
  text.replace(text.find("gelu(%4) :"), 10, "gelu(%4) #backward #recompute :");
  EXPECT_EQ(form_of(with_epilogues(text)), "matmul add -> 1");
}

constexpr const char* kReluSquared = R"(graph g {
  input x = %0 : f32[2,3,4]
  param w = %1 : f32[4,5]
  param b = %2 : f32[5]
  %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,3,5]
  %4 = add(%3, %2) : f32[2,3,5]
  %5 = constant() {dtype="f32", shape=[], value=0.0} : f32[]
  %6 = maximum(%4, %5) : f32[2,3,5]
  %7 = mul(%6, %6) : f32[2,3,5]
  %8 = sqrt(%4) #backward : f32[2,3,5]
  result y = %7
  result z = %8
})";

TEST(MatmulEpilogues, TakeAnyFunctionOfTheSum) {
  EXPECT_EQ(simpler_forms(kReluSquared),
            (std::vector<std::string>{"matmul add constant maximum mul -> 2", "matmul add constant maximum -> 2",
                                      "matmul add -> 1", ""}));
  std::string alone = kReluSquared;
  alone.replace(alone.find("sqrt(%4) #backward"), 18, "sqrt(%7)");
  EXPECT_EQ(form_of(with_epilogues(alone)), "matmul add constant maximum mul -> 1");
}

// As far as nothing else reads what lies between, and no further than the forward pass.
TEST(MatmulEpilogues, TakeAFunctionThatOthersReadAsFarAsTheyDo) {
  std::string read = kReluSquared, backward = kReluSquared;
  read.replace(read.find("sqrt(%4) #backward"), 18, "sqrt(%6) #backward");
  EXPECT_EQ(form_of(with_epilogues(read)), "matmul add constant maximum -> 1");
  backward.replace(backward.find("mul(%6, %6) :"), 13, "mul(%6, %6) #backward :");
  EXPECT_EQ(form_of(with_epilogues(backward)), "matmul add constant maximum -> 2");
}

// A vector is no operand of a function, nor is what a position decides.
TEST(MatmulEpilogues, TakeNothingThatIsNoFunction) {
  std::string vector = kReluSquared, index = kReluSquared;
  vector.replace(vector.find("mul(%6, %6)"), 11, "mul(%6, %2)");
  EXPECT_EQ(form_of(with_epilogues(vector)), "matmul add constant maximum -> 2");
  index.replace(index.find("constant() {dtype=\"f32\", shape=[], value=0.0} : f32[]"), 53,
                "iota() {dim=0, shape=[5]} : f32[5]");
  EXPECT_EQ(form_of(with_epilogues(index)), "matmul add -> 1");
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
  std::string read = kBackward;
  read.insert(read.rfind('}'), "  result dy = %3\n");
  EXPECT_EQ(form_of(with_epilogues(read)), "");
}

TEST(MatmulEpilogues, TakeAnyFunctionOfTheProductAndAMatrix) {
  auto with = [](const std::string& function, const std::string& result = "%4") {
    std::string text = kBackward;
    text.replace(text.find("dx = %4"), 7, "dx = " + result);
    text.replace(text.find("gelu_grad(%0, %3) : f32[3,5]"), 28, function);
    return form_of(with_epilogues(text));
  };
  EXPECT_EQ(with("gelu_grad(%3, %0) : f32[3,5]"), "matmul gelu_grad -> 1");
  EXPECT_EQ(with("mul(%3, %0) : f32[3,5]"), "matmul mul -> 1");
  EXPECT_EQ(with("add(%3, %0) : f32[3,5]"), "") << "a norm would rather take the sum";
  EXPECT_EQ(with("tanh(%3) : f32[3,5] %5 = mul(%4, %0) : f32[3,5] %6 = neg(%5) : f32[3,5]", "%6"),
            "matmul tanh mul neg -> 1");
  EXPECT_EQ(with("exp(%3) : f32[3,5]"), "") << "one of the product alone has a bias";
}

// As of a gated unit, of which either matmul may come first.
TEST(MatmulEpilogues, OfTwoProductsOneTakesTheOther) {
  // The second one stands where it reads what the first makes, and functions of both would be the same node.
  for (const char* order :
       {"%3 = matmul(%0, %1) T : f32[3,5] %4 = silu(%3) : f32[3,5] %5 = matmul(%0, %2) T : f32[3,5] ",
        "%5 = matmul(%0, %2) T : f32[3,5] %3 = matmul(%0, %1) T : f32[3,5] %4 = silu(%3) : f32[3,5] "}) {
    std::string text = "graph g { input x = %0 : f32[3,4] param gate = %1 : f32[4,5] param up = %2 : f32[4,5] ";
    text += order + std::string("%6 = mul(%4, %5) : f32[3,5] result y = %6 }");
    for (size_t at; (at = text.find(" T ")) != text.npos;) text.replace(at, 3, " {trans_a=false, trans_b=false} ");
    EXPECT_EQ(form_of(with_epilogues(text)).find("matmul"), 0u) << text;
  }
}

// As after a linear layer with a bias; `dtype` of all but the sums.
std::string bias_gradient(const std::string& dtype, const std::string& sums) {
  return fmt::format(R"(graph g {{
    input pre = %0 : {0}[2,3,5]
    input dy = %1 : {0}[2,3,4]
    param w = %2 : {0}[5,4]
    %3 = matmul(%1, %2) {{trans_a=false, trans_b=true}} : {0}[2,3,5]
    %4 = gelu_grad(%0, %3) : {0}[2,3,5]
    %5 = matmul(%4, %2) {{trans_a=false, trans_b=false}} : {0}[2,3,4]
    %6 = {1}
    result dx = %5
    result db = %6
  }})",
                     dtype, sums);
}

constexpr const char* kSums = "reduce_sum(%4) {dims=[0,1], keep=true} : f32[1,1,5]";

TEST(MatmulEpilogues, SumTheRowsOfTheDerivative) {
  Graph after = with_epilogues(bias_gradient("bf16", kSums));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input pre = %0 : bf16[2,3,5]
    input dy = %1 : bf16[2,3,4]
    param w = %2 : bf16[5,4]
    %3, %4 = fused_matmul(%1, %2, %0) : bf16[2,3,5], f32[1,1,5] {
      graph body {
        input a0 = %0 : bf16[2,3,4]
        input a1 = %1 : bf16[5,4]
        input a2 = %2 : bf16[2,3,5]
        %3 = matmul(%0, %1) {trans_a=false, trans_b=true} : bf16[2,3,5]
        %4 = gelu_grad(%2, %3) : bf16[2,3,5]
        %5 = cast(%4) {to="f32"} : f32[2,3,5]
        %6 = reduce_sum(%5) {dims=[0,1], keep=true} : f32[1,1,5]
        result r0 = %4
        result r1 = %6
      }
    }
    %5 = matmul(%3, %2) {trans_a=false, trans_b=false} : bf16[2,3,4]
    result dx = %5
    result db = %4
  })"));
  EXPECT_EQ(form_of(with_epilogues(bias_gradient("f32", kSums))), "matmul gelu_grad reduce_sum -> 2");
  std::string vector = bias_gradient("bf16", "reduce_sum(%4) {dims=[0,1], keep=false} : f32[5]");
  EXPECT_EQ(form_of(with_epilogues(vector)), "matmul gelu_grad cast reduce_sum reshape -> 2");
}

TEST(MatmulEpilogues, SumNothingElseWithTheDerivative) {
  const std::string alone = "matmul gelu_grad -> 1";
  PassContext context = able();
  context.target.matmul_operand_sums = false;
  EXPECT_EQ(form_of(with_epilogues(bias_gradient("bf16", kSums), context)), alone);
  for (const char* other :
       {"reduce_sum(%4) {dims=[0], keep=true} : f32[1,3,5]", "reduce_sum(%4) {dims=[1,2], keep=true} : f32[2,1,1]",
        "reduce_sum(%4) {dims=[0,1,2], keep=true} : f32[1,1,1]", "reduce_max(%4) {dims=[0,1], keep=true} : f32[1,1,5]"})
    EXPECT_EQ(form_of(with_epilogues(bias_gradient("bf16", other))), alone) << other;
  EXPECT_EQ(form_of(with_epilogues(bias_gradient("f32", R"(column(%4) : f32[1,5] {
    graph body {
      input a0 = %0 : f32[2,3,5]
      %1 = reshape(%0) {shape=[6,5]} : f32[6,5]
      %2 = exp(%1) : f32[6,5]
      %3 = reduce_sum(%2) {dims=[0], keep=true} : f32[1,5]
      result r0 = %3
    }
  })"))),
            alone);
}

TEST(MatmulEpilogues, LeaveTheSumsOutFirst) {
  std::string text = bias_gradient("bf16", kSums);
  std::vector<std::string> expected{"matmul gelu_grad cast reduce_sum -> 2", "matmul gelu_grad -> 1", ""};
  EXPECT_EQ(simpler_forms(text.c_str()), expected);
  PassContext context = able();
  context.kernels =
      test::fake_kernels({.takes_matmul = [](const Graph&, const Node& group) { return group.outputs.size() == 1; }});
  EXPECT_EQ(form_of(with_epilogues(text, context)), "matmul gelu_grad -> 1");
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
    EXPECT_TRUE(after.nodes()[0].op == &op::fused_matmul) << print(after);
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

// A micro-batch of GPT-2 that adds to gradients, before the passes over the step.
Graph micro_batch(const PassContext& context) {
  ModelConfig model{.layers = 2, .heads = 2, .width = 4, .context = 6, .vocab = 11};
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {2, 6}}), targets = g.input("targets", {DType::kI32, {2, 6}});
  graph.add_result("loss", gpt_loss(g, model, {tokens, targets}));
  run_passes(graph, PassStage::kForward, context);
  Gradients gradients;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  gradients.grads = differentiate(g, graph.find_result("loss"), gradients.parameters);
  append_accumulation(g, gradients);
  return graph;
}

PassContext able_in_bf16() {
  PassContext context = able();
  context.options.precision = Precision::kBf16;
  return context;
}

// Every matrix's gradient is added up by its matmul, but for the tied one.
TEST(MatmulEpilogues, OfAWholeMicroBatch) {
  PassContext context = able_in_bf16();
  Graph before = micro_batch(context), graph = before;
  run_passes(graph, PassStage::kStep, context);
  std::map<std::string, int> forms;
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::fused_matmul) continue;
    std::string form;
    for (const Node& inner : node.body->nodes()) form += std::string(inner.op->name) + " ";
    ++forms[form];
  }
  EXPECT_EQ(forms["matmul cast add "], 2 * 4);
  EXPECT_EQ(forms["matmul add gelu "], 2);
  EXPECT_EQ(forms["matmul gelu_grad cast reduce_sum "], 2);
  EXPECT_EQ(forms["matmul gelu_grad "], 0);
  test::expect_same_meaning(before, graph, 0.1);
}

// The keys of all matmuls, each with how many of them are in the backward pass.
std::map<std::string, int> matmuls_of(const Graph& graph) {
  std::map<std::string, int> found;
  for (const Node& node : graph.nodes())
    if (node.op->name == "matmul" || node.op == &op::fused_matmul)
      found[kernel_key(graph, node)] += node.phase == Phase::kBackward;
  return found;
}

// To a memory budget products with bias and GELU are computed again: by the kernels that computed them before.
TEST(MatmulEpilogues, RecomputationBringsNoOtherKernel) {
  PassContext context = able_in_bf16();
  context.target.matmul_function = false;
  Graph kept = micro_batch(context), recomputed = kept;
  run_passes(kept, PassStage::kStep, context);
  context.options.memory_budget_gib = 1e-9;
  run_passes(recomputed, PassStage::kStep, context);
  std::map<std::string, int> before = matmuls_of(kept), after = matmuls_of(recomputed);
  int again = 0;
  for (const auto& [key, backward] : after) {
    ASSERT_TRUE(before.contains(key)) << key;
    if (key.find("gelu(") != key.npos) again += backward;
  }
  EXPECT_EQ(again, 2);
  test::expect_same_meaning(kept, recomputed);
}

}  // namespace
}  // namespace tokamak
