#include "passes/chunked_classifier.h"

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/model_config.h"
#include "model/gpt.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

using test::parse;

// A classifier with its gradients; `more` may add readers, `factor` is what the losses' gradient is made of.
std::string step_text(const std::string& more = "", const std::string& factor = "%3") {
  return R"(graph g {
    input x = %0 : f32[6,3]
    input w = %1 : f32[5,3]
    input targets = %2 : i32[6]
    state scale = %3 : f32[]
    %4 = matmul(%0, %1) {trans_a=false, trans_b=true} : f32[6,5]
    %5, %6 = cross_entropy(%4, %2) {classes=4} : f32[6], f32[6]
    %7 = reduce_sum(%5) {dims=[0], keep=false} : f32[]
    %8 = constant() {dtype="f32", shape=[6], value=0.25} #backward : f32[6]
    %9 = mul(%8, )" +
         factor + R"() #backward : f32[6]
    %10 = cross_entropy_grad(%4, %2, %6, %9) {classes=4} #backward : f32[6,5]
    %11 = matmul(%10, %1) {trans_a=false, trans_b=false} #backward : f32[6,3]
    %12 = matmul(%10, %0) {trans_a=true, trans_b=false} #backward : f32[5,3]
)" + more +
         R"(
    result loss = %7
    result dx = %11
    result dw = %12
  })";
}

TEST(ChunkedClassifier, TakesTheGradientOfTheLossesBeforeTheLoss) {
  Graph before = parse(step_text()), after = before;
  EXPECT_TRUE(chunked_classifier(after, {}));
  verify(after);
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[6,3]
    input w = %1 : f32[5,3]
    input targets = %2 : i32[6]
    state scale = %3 : f32[]
    %4 = constant() {dtype="f32", shape=[6], value=0.25} #backward : f32[6]
    %5 = mul(%4, %3) #backward : f32[6]
    %6, %7, %8, %9 = classifier(%0, %1, %2, %5) {chunk=6, classes=4} #backward : f32[6], f32[6,3], f32[5,3], f32[6,5]
    %10 = reduce_sum(%6) {dims=[0], keep=false} : f32[]
    result loss = %10
    result dx = %7
    result dw = %8
  })"));
  test::expect_same_meaning(before, after, 1e-12);
}

// ZeRO gathers the matrix for each pass; the part that a rank has is w.
std::string gathering_text(const std::string& again) {
  return R"(graph g {
    input x = %0 : f32[6,3]
    param w = %1 {cuts="data:2@0", global=[6,3]} : f32[3,3]
    input targets = %2 : i32[6]
    %3 = all_gather(%1) {axis="data", dims=[0], size=2} : f32[6,3]
    %4 = matmul(%0, %3) {trans_a=false, trans_b=true} : f32[6,6]
    %5, %6 = cross_entropy(%4, %2) {classes=4} : f32[6], f32[6]
    %7 = constant() {dtype="f32", shape=[6], value=0.25} #backward : f32[6]
    %8 = cross_entropy_grad(%4, %2, %6, %7) {classes=4} #backward : f32[6,6]
    %9 = all_gather()" +
         again + R"() {axis="data", dims=[0], size=2} #backward : f32[6,3]
    %10 = matmul(%8, %9) {trans_a=false, trans_b=false} #backward : f32[6,3]
    %11 = matmul(%8, %0) {trans_a=true, trans_b=false} #backward : f32[6,3]
    result loss = %5
    result dx = %10
    result dw = %11
  })";
}

TEST(ChunkedClassifier, TakesAMatrixThatIsGatheredTwice) {
  Graph graph = parse(gathering_text("%1"));
  EXPECT_TRUE(chunked_classifier(graph, {}));
  EXPECT_EQ(print(graph), test::canonical(R"(graph g {
    input x = %0 : f32[6,3]
    param w = %1 {cuts="data:2@0", global=[6,3]} : f32[3,3]
    input targets = %2 : i32[6]
    %3 = all_gather(%1) {axis="data", dims=[0], size=2} : f32[6,3]
    %4 = constant() {dtype="f32", shape=[6], value=0.25} #backward : f32[6]
    %5, %6, %7, %8 = classifier(%0, %3, %2, %4) {chunk=6, classes=4} #backward : f32[6], f32[6,3], f32[6,3], f32[6,6]
    result loss = %5
    result dx = %6
    result dw = %7
  })"));
}

TEST(ChunkedClassifier, KeepsTheSoftCap) {
  std::string text = step_text();
  for (size_t at = 0; (at = text.find("{classes=4}", at)) != std::string::npos; ++at)
    text.replace(at, 11, "{classes=4, softcap=1.5, softcap_shift=-0.25, softcap_width=2.0}");
  Graph before = parse(text), after = before;
  EXPECT_TRUE(chunked_classifier(after, {}));
  test::expect_same_meaning(before, after, 1e-12);
  EXPECT_NE(print(after).find("{chunk=6, classes=4, softcap=1.5, softcap_shift=-0.25, softcap_width=2.0}"),
            std::string::npos)
      << print(after);
}

TEST(ChunkedClassifier, LeavesASecondGatheringThatIsReadElsewhere) {
  std::string text = gathering_text("%1");
  text.insert(text.find("result loss"), "%12 = exp(%9) #backward : f32[6,3]\n    result e = %12\n    ");
  Graph graph = parse(text);
  EXPECT_TRUE(chunked_classifier(graph, {}));
  EXPECT_EQ(test::count_ops(graph, "all_gather"), 2) << print(graph);
}

TEST(ChunkedClassifier, LeavesWhatIsReadElsewhere) {
  for (const char* value : {"%4", "%6", "%10"}) {
    Graph graph = parse(step_text(fmt::format("    result other = {}", value)));
    EXPECT_FALSE(chunked_classifier(graph, {})) << value;
    std::string text = step_text(fmt::format("    %13 = exp({0}) : f32[{1}]\n    result other = %13", value,
                                             std::string(value) == "%6" ? "6" : "6,5"));
    graph = parse(text);
    EXPECT_FALSE(chunked_classifier(graph, {})) << value;
  }
}

TEST(ChunkedClassifier, LeavesALossWhoseGradientDependsOnIt) {
  Graph graph = parse(step_text("", "%7"));
  EXPECT_FALSE(chunked_classifier(graph, {}));
}

TEST(ChunkedClassifier, LeavesOtherOperandsAndOnlyOneGradient) {
  auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  Graph no_dx = parse(replaced(step_text(), "result dx = %11", "result dx = %12"));
  Graph only = parse(replaced(replaced(step_text(),
                                       "    %11 = matmul(%10, %1) {trans_a=false, trans_b=false} "
                                       "#backward : f32[6,3]\n",
                                       ""),
                              "result dx = %11", "result dx = %12"));
  EXPECT_TRUE(chunked_classifier(no_dx, {}));  // dx is still made; eliminate_dead_code comes before
  EXPECT_FALSE(chunked_classifier(only, {}));
  Graph swapped = parse(replaced(step_text(), "matmul(%10, %0) {trans_a=true", "matmul(%10, %11) {trans_a=true"));
  EXPECT_FALSE(chunked_classifier(swapped, {}));
}

TEST(ChooseChunk, FitsTheLimitAndDividesTheRowsWhereItCan) {
  constexpr double kGib = 1 << 30;
  EXPECT_EQ(choose_chunk(65536, 50304 * 2, kGib), 8192);
  EXPECT_EQ(choose_chunk(65536, 50304 * 4, kGib), 4096);
  EXPECT_EQ(choose_chunk(4096, 50304 * 2, kGib), 4096);          // all at once
  EXPECT_EQ(choose_chunk(65536, 50304 * 2, kGib / 1024), 2048);  // too few to be worth it
  EXPECT_EQ(choose_chunk(100, 50304 * 2, 1), 100);
  EXPECT_EQ(choose_chunk(48 * 1024, 50304 * 2, kGib), 8192);
  int64_t odd = choose_chunk(63 * 1023, 50304 * 2, kGib);  // no multiple of 256 divides: about the same size each
  EXPECT_EQ(odd % 256, 0);
  EXPECT_LE(odd * 50304 * 2, int64_t(kGib));
  EXPECT_LT(odd * ((63 * 1023 + odd - 1) / odd) - 63 * 1023, 256 * 8);
}

// Whole steps, through all passes.
struct Step {
  const char* name;
  bool tied = true;
  bool scaled = false;
  Precision precision = Precision::kFp32;
  bool documents = false;
};

Graph step_of_gpt(const Step& step, bool chunked) {
  PassContext context;
  context.options.precision = step.precision;
  context.target.chunked_classifier = chunked;
  context.target.vocab_multiple = 4;
  ModelConfig model{.layers = 1, .heads = 2, .width = 4, .context = 6, .vocab = 17, .tie_weights = step.tied};
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {2, 6}}), targets = g.input("targets", {DType::kI32, {2, 6}});
  PackedDocuments documents = step.documents ? add_document_inputs(g, 2, 6) : PackedDocuments{};
  graph.add_result("loss", gpt_loss(g, model, {tokens, targets, kNoValue, documents}));
  run_passes(graph, PassStage::kForward, context);
  Gradients gradients;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  ValueId loss = graph.find_result("loss");
  gradients.grads = differentiate(g, step.scaled ? scaled_loss(g, loss) : loss, gradients.parameters);
  for (size_t i = 0; i < gradients.grads.size(); ++i) graph.add_result(fmt::format("{}", i), gradients.grads[i]);
  run_passes(graph, PassStage::kStep, context);
  return graph;
}

const Node* find_classifier(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op->name == "classifier") return &node;
  return nullptr;
}

class ChunkedStep : public testing::TestWithParam<Step> {};

TEST_P(ChunkedStep, HasTheSameLossAndGradients) {
  Graph plain = step_of_gpt(GetParam(), false), chunked = step_of_gpt(GetParam(), true);
  EXPECT_FALSE(find_classifier(plain));
  ASSERT_TRUE(find_classifier(chunked)) << print(chunked);
  bool low = GetParam().precision != Precision::kFp32;
  test::expect_same_meaning(plain, chunked, low ? 2e-2 : 1e-9);  // low: dW is rounded on one side only
}

TEST_P(ChunkedStep, StoresNoLogitsButTheChunks) {
  Graph graph = step_of_gpt(GetParam(), true);
  int logits = 0;
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs) logits += graph.shape(output) == Shape{12, 20};
  EXPECT_EQ(logits, 1) << print(graph);
}

TEST_P(ChunkedStep, HasTheTypesOfItsPrecision) {
  Precision precision = GetParam().precision;
  DType low = precision == Precision::kBf16 ? DType::kBF16 : precision == Precision::kFp16 ? DType::kF16 : DType::kF32;
  Graph graph = step_of_gpt(GetParam(), true);
  const Node* node = find_classifier(graph);
  ASSERT_TRUE(node);
  for (int i : {0, 1}) EXPECT_EQ(graph.dtype(node->inputs[size_t(i)]), low);
  EXPECT_EQ(graph.dtype(node->outputs[0]), DType::kF32);
  EXPECT_EQ(graph.dtype(node->outputs[1]), low);
  EXPECT_EQ(graph.dtype(node->outputs[2]), DType::kF32);
  EXPECT_EQ(graph.dtype(node->outputs[3]), low);
}

// A tied weight's gradient: the embedding's rows are added onto the classifier's.
TEST_P(ChunkedStep, GetsTheEmbeddingsGradientInPlace) {
  Graph graph = step_of_gpt(GetParam(), true);
  const Node* node = find_classifier(graph);
  ASSERT_TRUE(node);
  int onto = 0;
  for (const Node& scatter : graph.nodes())
    onto += scatter.op->name == "embedding_grad" && scatter.inputs.size() == 3 && scatter.inputs[2] == node->outputs[2];
  EXPECT_EQ(onto, GetParam().tied ? 1 : 0) << print(graph);
}

INSTANTIATE_TEST_SUITE_P(Steps, ChunkedStep,
                         testing::Values(Step{"Tied"}, Step{"Untied", false}, Step{"Scaled", true, true},
                                         Step{"Bf16", true, false, Precision::kBf16},
                                         Step{"Bf16Untied", false, false, Precision::kBf16},
                                         Step{"Fp16", true, true, Precision::kFp16},
                                         Step{"Tf32", true, false, Precision::kTf32},
                                         Step{"Documents", true, false, Precision::kFp32, true},
                                         Step{"DocumentsScaled", true, true, Precision::kFp16, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ChunkedClassifier, LeavesInferenceAlone) {
  Graph graph = eval_graph({.layers = 1, .heads = 2, .width = 4, .context = 6, .vocab = 11}, 2, 6);
  EXPECT_FALSE(chunked_classifier(graph, {}));
}

TEST(ChunkedClassifier, IsChosenByTargetAndOption) {
  for (bool target : {false, true})
    for (bool option : {false, true}) {
      PassContext context;
      context.target.chunked_classifier = target;
      if (!option) context.options.disable_passes = {"chunked_classifier"};
      Graph graph = parse(step_text());
      run_passes(graph, PassStage::kStep, context);
      EXPECT_EQ(find_classifier(graph) != nullptr, target && option);
    }
}

}  // namespace
}  // namespace tokamak
