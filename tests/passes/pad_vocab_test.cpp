#include "passes/pad_vocab.h"

#include "autodiff/differentiate.h"
#include "config/mesh_config.h"
#include "passes/step_mesh.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

std::string model(const std::string& more = "") {
  return R"(graph g {
    input tokens = %0 : i32[2,3]
    input targets = %1 : i32[6]
    param wte = %2 : f32[5,4]
    %3 = embedding(%2, %0) : f32[2,3,4]
    %4 = matmul(%3, %2) {trans_a=false, trans_b=true} : f32[2,3,5]
    %5 = reshape(%4) {shape=[6,5]} : f32[6,5]
    %6, %7 = cross_entropy(%5, %1) {classes=5} : f32[6], f32[6]
    %8 = reduce_sum(%6) {dims=[0], keep=false} : f32[]
    )" + more +
         R"(
    result loss = %8
  })";
}

PassContext to_multiple_of(int64_t multiple) {
  PassContext context;
  context.target.vocab_multiple = multiple;
  return context;
}

TEST(PadVocab, PadsTheWeightAndNotTheClasses) {
  Graph before = parse(model()), after = before;
  EXPECT_TRUE(pad_vocab(after, to_multiple_of(8)));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input tokens = %0 : i32[2,3]
    input targets = %1 : i32[6]
    param wte = %2 {global=[5,4]} : f32[8,4]
    %3 = embedding(%2, %0) : f32[2,3,4]
    %4 = matmul(%3, %2) {trans_a=false, trans_b=true} : f32[2,3,8]
    %5 = reshape(%4) {shape=[6,8]} : f32[6,8]
    %6, %7 = cross_entropy(%5, %1) {classes=5} : f32[6], f32[6]
    %8 = reduce_sum(%6) {dims=[0], keep=false} : f32[]
    result loss = %8
  })"));
}

// Untied, beside a classifier of its own; tensor ranks cut its rows.
TEST(PadVocab, ATableThatIsLookedUpGetsRowsThatTensorRanksDivide) {
  constexpr const char* kTable = R"(graph g {
    input tokens = %0 : i32[2,3]
    param table = %1 {role="embedding"} : f32[5,4]
    %2 = embedding(%1, %0) : f32[2,3,4]
    result y = %2
  })";
  Graph table = parse(kTable);
  EXPECT_FALSE(pad_vocab(table, to_multiple_of(8))) << "on one rank it stays as it is";
  PassContext context = to_multiple_of(8);
  context.mesh = step_mesh({.data = 1, .tensor = 2});
  EXPECT_TRUE(pad_vocab(table, context));
  EXPECT_EQ(table.shape(table.find_argument("table")), (Shape{6, 4}));
  Graph shown = parse(kTable);
  shown.add_result("table", shown.find_argument("table"));
  EXPECT_FALSE(pad_vocab(shown, context)) << "someone sees all of it";
}

TEST(PadVocab, ArgmaxMayLookAtTheSameColumns) {
  Graph whole = parse(model("%9 = argmax(%5) {classes=5} : f32[6]  result choice = %9"));
  EXPECT_TRUE(pad_vocab(whole, to_multiple_of(8)));
  Graph fewer = parse(model("%9 = argmax(%5) {classes=4} : f32[6]  result choice = %9"));
  EXPECT_FALSE(pad_vocab(fewer, to_multiple_of(8)));
}

// The gradient with respect to the weight, as a second result.
Graph with_gradient(Graph graph) {
  GraphBuilder g(graph);
  ValueId weight = graph.find_argument("wte");
  graph.add_result("dwte", differentiate(g, graph.find_result("loss"), std::span(&weight, 1))[0]);
  return graph;
}

TEST(PadVocab, KeepsLossAndGradientsWhateverThePaddingHolds) {
  Graph narrow = parse(model()), wide = narrow;
  pad_vocab(wide, to_multiple_of(8));
  narrow = with_gradient(std::move(narrow));
  wide = with_gradient(std::move(wide));
  auto arguments = test::random_arguments(wide);
  auto wide_out = interpret(wide, arguments).results;
  HostTensor& weight = arguments[2];
  weight.type.shape = {5, 4};
  weight.data.resize(20);
  auto narrow_out = interpret(narrow, arguments).results;
  EXPECT_EQ(wide_out[0][0], narrow_out[0][0]);
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_NEAR(wide_out[1][i], i < 20 ? narrow_out[1][i] : 0.0, i < 20 ? 1e-14 : 0.0) << i;
}

TEST(PadVocab, DoesNotFireWhereItWouldBeSeen) {
  Graph multiple = parse(model());
  EXPECT_FALSE(pad_vocab(multiple, to_multiple_of(5)));
  for (const char* more :
       {"result logits = %4", "%9 = exp(%2) : f32[5,4]  result e = %9", "%9 = softmax(%5) : f32[6,5]  result p = %9"}) {
    Graph graph = parse(model(more));
    EXPECT_FALSE(pad_vocab(graph, to_multiple_of(8))) << more;
  }
}

TEST(PadVocab, PadsAnUntiedHead) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[6,4]
    input targets = %1 : i32[6]
    param head = %2 : f32[5,4]
    %3 = matmul(%0, %2) {trans_a=false, trans_b=true} : f32[6,5]
    %4, %5 = cross_entropy(%3, %1) {classes=5} : f32[6], f32[6]
    result loss = %4
  })");
  EXPECT_TRUE(pad_vocab(graph, to_multiple_of(128)));
  EXPECT_EQ(graph.shape(graph.find_argument("head")), (Shape{128, 4}));
}

}  // namespace
}  // namespace tokamak
