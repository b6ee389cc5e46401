#include "passes/float8_products.h"

#include "graph/builder.h"
#include "graph/rewriter.h"
#include "graph/single_node.h"
#include "ops/classifier.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/matmul_formats.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "passes/float8_choice.h"
#include "tests/passes/float8_context.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

using test::in_fp8;
using test::parse;
using test::products_of;

// A norm, a product of it, and the gradients of both operands.
Graph norm_and_product(std::string_view norm = "layer_norm(%0, %1, %2) {eps=1e-05}") {
  return parse(fmt::format(R"(graph g {{
    input x = %0 : bf16[2,16,32]
    param gain = %1 : f32[32]
    param bias = %2 : f32[32]
    param w = %3 : bf16[32,48]
    input dy = %4 : bf16[32,48]
    %5, %6, %7 = {} : bf16[2,16,32], f32[2,16,1], f32[2,16,1]
    %8 = matmul(%5, %3) {{trans_a=false, trans_b=false}} : bf16[2,16,48]
    %9 = reshape(%5) {{shape=[32,32]}} : bf16[32,32]
    %10 = matmul(%4, %3) {{trans_a=false, trans_b=true}} #backward : bf16[32,32]
    %11 = matmul(%9, %4) {{trans_a=true, trans_b=false}} #backward : bf16[32,48]
    result y = %8
    result dx = %10
    result dw = %11
  }})",
                           norm));
}

TEST(Float8Products, TakesForwardProductsOfNorms) {
  Graph before = norm_and_product(), after = before;
  EXPECT_TRUE(float8_products(after, in_fp8()));
  verify(after);
  std::vector<const Node*> products = products_of(after);
  ASSERT_EQ(products.size(), 3u);
  MatmulFormats forward = matmul_formats(spec_of(after, *products[0]));
  EXPECT_EQ(forward, (MatmulFormats{NumberFormat::kF8E4M3, NumberFormat::kF8E4M3, DType::kF32, DType::kBF16}));
  EXPECT_TRUE(products[0]->attrs.get_bool("trans_b")) << "both sums along rows";
  EXPECT_EQ(after.shape(products[0]->inputs[1]), (Shape{48, 32}));
  for (size_t i : {1, 2}) EXPECT_EQ(after.dtype(products[i]->inputs[0]), DType::kBF16);
  EXPECT_FALSE(float8_products(after, in_fp8())) << "converted twice";
}

// Tuning names a product by what is there before the pass and behind it.
TEST(Float8Products, LeavesAProductThatWasMeasuredToBeSlower) {
  PassContext context = in_fp8();
  Graph before = norm_and_product(), all = before, rest = before;
  std::string key = float8_key(before, *products_of(before)[0]).value();
  float8_products(all, context);
  EXPECT_EQ(float8_key(all, *products_of(all)[0]), key);
  EXPECT_NE(float8_key(all, *products_of(all)[1]), key);
  EXPECT_TRUE(has_float8_operand(all, *products_of(all)[0]));
  context.tuning.slow_forms = {key};
  EXPECT_FALSE(float8_products(rest, context));
  std::vector<std::optional<Float8Choice>> choices = float8_choices(rest, context);
  EXPECT_EQ(std::ranges::count(choices, Float8Choice::kSlowerHere), 1);
}

// What compile.fp8_except names: all products of that weight, its gradient's among them, and what would follow from
// them.
TEST(Float8Products, LeavesTheProductsOfAnExceptedKind) {
  Graph before = norm_and_product();
  PassContext other = in_fp8(), mine = in_fp8();
  other.options.fp8_except = {"gain"};
  mine.options.fp8_except = {"w"};
  Graph taken = before, left = before;
  EXPECT_TRUE(float8_products(taken, other));
  EXPECT_FALSE(float8_products(left, mine));
  std::vector<std::optional<Float8Choice>> choices = float8_choices(left, mine);
  EXPECT_EQ(std::ranges::count(choices, Float8Choice::kExcepted), 2) << "nothing reads dx, as if it were a result";
}

// ||is - was|| / ||was||.
double relative_error(const HostTensor& is, const HostTensor& was) {
  double squares = 0, errors = 0;
  for (int64_t i = 0; i < was.size(); ++i) squares += was[i] * was[i], errors += std::pow(was[i] - is[i], 2);
  return std::sqrt(errors / squares);
}

// Three bits of mantissa: an error of 2^-4 of each element at most, some 2^-5.5 of a sum of many.
TEST(Float8Products, KeepsTheMeaning) {
  Graph before = norm_and_product(), after = before;
  float8_products(after, in_fp8());
  std::vector<HostTensor> arguments = test::random_arguments(before);
  Interpretation was = interpret(before, arguments), is = interpret(after, arguments);
  double error = relative_error(is.results[0], was.results[0]);
  EXPECT_LT(error, 0.05);
  EXPECT_GT(error, 0.005) << "nothing was rounded";
  for (size_t r : {1, 2}) EXPECT_EQ(was.results[r].data, is.results[r].data);
}

// One element of a row has all of its length: the largest that a norm can give, times the largest gain.
TEST(Float8Products, NothingOverflows) {
  Graph graph = norm_and_product();
  float8_products(graph, in_fp8());
  ValueId scaled = products_of(graph)[0]->inputs[0];
  graph.add_result("scaled", scaled);
  std::vector<HostTensor> arguments = test::random_arguments(graph);
  for (double& v : arguments[0].data) v = 0;
  for (int64_t row = 0; row < 32; ++row) arguments[0][row * 32 + 3] = 100;
  for (double& v : arguments[1].data) v = 0.5;
  arguments[1][3] = -2;
  arguments[2][3] = -1;
  HostTensor values = interpret(graph, arguments).results.back();
  double most = 0;
  for (double v : values.data) most = std::max(most, std::fabs(v));
  EXPECT_LE(most, 448);
  EXPECT_GT(most, 400) << "of the range nothing is wasted";
}

TEST(Float8Products, ZerosStayZeros) {
  Graph graph = norm_and_product();
  float8_products(graph, in_fp8());
  std::vector<HostTensor> arguments = test::random_arguments(graph);
  for (size_t i : {1, 2, 3})
    for (double& v : arguments[i].data) v = 0;
  HostTensor y = interpret(graph, arguments).results[0];
  for (double v : y.data) EXPECT_EQ(v, 0);
}

TEST(Float8Products, KnowsNormsWithoutGainOrBias) {
  Graph without_bias = norm_and_product("layer_norm(%0, %1) {eps=1e-05}");
  EXPECT_TRUE(float8_products(without_bias, in_fp8()));
  Graph rms = parse(R"(graph g {
    input x = %0 : bf16[16,32]
    param w = %1 : bf16[48,32]
    %2, %3 = rms_norm(%0) {eps=1e-05} : bf16[16,32], f32[16,1]
    %4 = matmul(%2, %1) {trans_a=false, trans_b=true} : bf16[16,48]
    result y = %4
  })");
  Graph before = rms;
  EXPECT_TRUE(float8_products(rms, in_fp8()));
  test::expect_same_meaning(before, rms, 0.4);
}

TEST(Float8Products, LeavesWhatDoesNotPay) {
  PassContext slow_memory = in_fp8(), slow_launch = in_fp8();
  slow_memory.target.memory_bandwidth = 1e6;
  slow_launch.target.launch_seconds = 1;
  for (const PassContext& context : {slow_memory, slow_launch}) {
    Graph graph = norm_and_product();
    EXPECT_FALSE(float8_products(graph, context));
  }
}

// A residual stream has no bound; sizes of 8 have no kernel; nor has a product of two activations one weight.
TEST(Float8Products, LeavesWhatItDoesNotKnow) {
  Graph stream = parse(R"(graph g {
    input x = %0 : bf16[16,32]
    param w = %1 : bf16[32,48]
    %2 = add(%0, %0) : bf16[16,32]
    %3 = matmul(%2, %1) {trans_a=false, trans_b=false} : bf16[16,48]
    result y = %3
  })");
  EXPECT_FALSE(float8_products(stream, in_fp8()));
  Graph small = parse(R"(graph g {
    input x = %0 : bf16[16,32]
    param w = %1 : bf16[32,40]
    %2, %3 = rms_norm(%0) {eps=1e-05} : bf16[16,32], f32[16,1]
    %4 = matmul(%2, %1) {trans_a=false, trans_b=false} : bf16[16,40]
    result y = %4
  })");
  EXPECT_FALSE(float8_products(small, in_fp8()));
}

// The gradient of the residual stream behind a norm, and the product that reads it.
Graph gradient_graph(std::string_view stream) {
  return parse(fmt::format(R"(graph g {{
    input logits = %0 : bf16[16,48]
    input targets = %1 : i32[16]
    input lse = %2 : f32[16]
    input dloss = %3 : f32[16]
    param w = %4 : bf16[48,32]
    param head = %5 : bf16[48,32]
    input x = %6 : bf16[16,32]
    input mean = %7 : f32[16,1]
    input rstd = %8 : f32[16,1]
    param gain = %9 : f32[32]
    %10 = cross_entropy_grad(%0, %1, %2, %3) {{classes=48}} #backward : bf16[16,48]
    %11 = matmul(%10, %5) {{trans_a=false, trans_b=false}} #backward : bf16[16,32]
    %12 = layer_norm_grad(%11, %6, %9, %7, %8) #backward : bf16[16,32]
    %13 = {} #backward : bf16[16,32]
    %14 = matmul(%13, %4) {{trans_a=false, trans_b=true}} #backward : bf16[16,48]
    %15 = add(%14, %0) #backward : bf16[16,48]
    %16 = matmul(%15, %5) {{trans_a=false, trans_b=false}} #backward : bf16[16,32]
    result dx = %16
  }})",
                           stream));
}

TEST(Float8Products, TakesProductsOfTheStreamsGradient) {
  Graph before = gradient_graph("add(%12, %6)"), after = before;
  EXPECT_TRUE(float8_products(after, in_fp8()));
  verify(after);
  std::vector<const Node*> products = products_of(after);
  ASSERT_EQ(products.size(), 3u);
  EXPECT_EQ(matmul_formats(spec_of(after, *products[1])),
            (MatmulFormats{NumberFormat::kF8E5M2, NumberFormat::kF8E4M3, DType::kF32, DType::kBF16}));
  for (size_t i : {0, 2}) EXPECT_EQ(after.dtype(products[i]->inputs[0]), DType::kBF16) << "gradients of no known range";
}

TEST(Float8Products, LeavesGradientsOfOtherMakers) {
  Graph graph = gradient_graph("mul(%12, %6)");
  EXPECT_FALSE(float8_products(graph, in_fp8()));
}

// A row's loss has the gradient 2^-16, as of 65,536 tokens; a hundredth of that is not lost, and nothing becomes 0.
TEST(Float8Products, SmallGradientsStay) {
  Graph graph = gradient_graph("add(%12, %6)");
  float8_products(graph, in_fp8());
  const Node& product = *products_of(graph)[1];
  graph.add_result("scaled", product.inputs[0]);
  graph.add_result("scale", product.inputs[2]);
  std::vector<HostTensor> arguments = test::random_arguments(graph);
  for (double& v : arguments[3].data) v = 0x1p-16;
  for (double& v : arguments[6].data) v = 0x1p-23;
  for (double& v : arguments[8].data) v = 0;  // nothing comes from the branch
  Interpretation out = interpret(graph, arguments);
  const HostTensor &scaled = out.results[1], &scale = out.results[2];
  for (double v : scaled.data) EXPECT_EQ(v * scale[0], 0x1p-23);
}

// What ranks gather of a norm, and its readers.
Graph gathered_norm(std::string_view readers) {
  return parse(fmt::format(R"(graph g {{
    input x = %0 : f32[16,32]
    param gain = %1 : f32[32]
    param w = %2 : bf16[32,48]
    input dy = %3 : bf16[32,48]
    %4, %5 = rms_norm(%0, %1) {{eps=1e-05}} : f32[16,32], f32[16,1]
    %6 = cast(%4) {{to="bf16"}} : bf16[16,32]
    %7 = all_gather(%6) {{axis="tensor", dims=[0], size=2}} : bf16[32,32]
    %8 = reshape(%7) {{shape=[2,16,32]}} : bf16[2,16,32]
    %9 = matmul(%8, %2) {{trans_a=false, trans_b=false}} : bf16[2,16,48]
    {}
  }})",
                           readers));
}

std::vector<DType> gathered_types(const Graph& graph) {
  std::vector<DType> types;
  for (const Node& node : graph.nodes())
    if (node.op == &op::all_gather) types.push_back(graph.dtype(node.outputs[0]));
  return types;
}

TEST(Float8Products, RanksGatherEightBits) {
  Graph graph = gathered_norm("result y = %9");
  EXPECT_TRUE(float8_products(graph, in_fp8()));
  verify(graph);
  EXPECT_EQ(gathered_types(graph), std::vector{DType::kF8E4M3});
  EXPECT_EQ(graph.dtype(products_of(graph)[0]->inputs[0]), DType::kF8E4M3);
}

// The product of the gradient of w needs them with sixteen; then they are gathered once, and rounded behind.
TEST(Float8Products, RanksGatherSixteenBitsWhereSomethingReadsThem) {
  Graph graph = gathered_norm(R"(%10 = matmul(%7, %3) {trans_a=true, trans_b=false} #backward : bf16[32,48]
    result y = %9
    result dw = %10)");
  EXPECT_TRUE(float8_products(graph, in_fp8()));
  verify(graph);
  EXPECT_EQ(gathered_types(graph), std::vector{DType::kBF16});
  EXPECT_EQ(graph.dtype(products_of(graph)[0]->inputs[0]), DType::kF8E4M3);
  EXPECT_EQ(graph.dtype(products_of(graph)[1]->inputs[0]), DType::kBF16);
}

// A stage of a pipeline without the loss, and a rank that has a part of the vocabulary.
Graph gradient_without_loss(std::string_view weight = "") {
  return parse(fmt::format(R"(graph g {{
    input dx = %0 : bf16[16,32]
    input x = %1 : bf16[16,32]
    input mean = %2 : f32[16,1]
    input rstd = %3 : f32[16,1]
    param gain = %4 : f32[32]
    param w = %5 : bf16[48,32]
    {}
    %7 = layer_norm_grad(%0, %1, %4, %2, %3) #backward : bf16[16,32]
    %8 = matmul(%7, %5) {{trans_a=false, trans_b=true}} #backward : bf16[16,48]
    %9 = mul(%8, %8) #backward : bf16[16,48]
    result dy = %8
    result more = %9
  }})",
                           weight.empty() ? "input other = %6 : f32[]" : weight));
}

TEST(Float8Products, GradientsAreCountedInTheLossesWeight) {
  PassContext context = in_fp8();
  context.loss_weight = 0x1p-10;
  Graph constant = gradient_without_loss(), given = gradient_without_loss("input loss_weight = %6 : f32[]"),
        asked = gradient_without_loss();
  std::vector<HostTensor> arguments = test::random_arguments(given);
  arguments[6].data = {0x1p-10};
  EXPECT_TRUE(float8_products(constant, context));
  EXPECT_TRUE(float8_products(given, in_fp8()));
  EXPECT_TRUE(float8_products(asked, in_fp8()));
  EXPECT_NE(asked.find_argument("loss_weight"), kNoValue);
  for (Graph* graph : {&constant, &given, &asked}) {
    const Node& product = *products_of(*graph)[0];
    EXPECT_EQ(graph->dtype(product.inputs[0]), DType::kF8E5M2);
    graph->add_result("scale", product.inputs[2]);
    if (graph == &asked) arguments.push_back(arguments[6]);
    EXPECT_EQ(interpret(*graph, arguments).results.back()[0], 0x1p-18) << "the weight becomes 256";
  }
}

// GELU of a norm's product with a bias, and the product that reads it.
Graph mlp_graph() {
  return parse(R"(graph g {
    input x = %0 : bf16[32,16]
    param gain = %1 : f32[16]
    param fc = %2 : bf16[16,48]
    param bias = %3 : bf16[48]
    param proj = %4 : bf16[48,32]
    %5, %6 = rms_norm(%0, %1) {eps=1e-05} : bf16[32,16], f32[32,1]
    %7 = matmul(%5, %2) {trans_a=false, trans_b=false} : bf16[32,48]
    %8 = add(%7, %3) : bf16[32,48]
    %9 = gelu(%8) : bf16[32,48]
    %10 = matmul(%9, %4) {trans_a=false, trans_b=false} : bf16[32,32]
    result y = %10
  })");
}

TEST(Float8Products, TakesProductsOfGelu) {
  Graph before = mlp_graph(), after = before;
  EXPECT_TRUE(float8_products(after, in_fp8()));
  verify(after);
  ValueId hidden = products_of(after)[1]->inputs[0];
  EXPECT_EQ(after.dtype(hidden), DType::kF8E4M3);
  after.add_result("hidden", hidden);
  std::vector<HostTensor> arguments = test::random_arguments(before);
  for (int64_t c = 0; c < 16; ++c) arguments[2][c * 48 + 5] = arguments[0][c] * 100;  // as long as x, and like it
  for (double& gain : arguments[1].data) gain = 2;
  Interpretation was = interpret(before, arguments), is = interpret(after, arguments);
  EXPECT_LT(relative_error(is.results[0], was.results[0]), 0.1);
  double most = 0;
  for (double v : is.results[1].data) most = std::max(most, std::fabs(v));
  EXPECT_LT(most, 448) << "nothing overflows";
  EXPECT_GT(most, 350) << "of the range little is wasted";
}

// A bias that ZeRO cuts is gathered where it is added; GELU's bound, which the product wants, reads it, too.
TEST(Float8Products, GathersABiasBeforeTheProductThatIsBoundByIt) {
  Graph after = parse(R"(graph g {
    input x = %0 : bf16[32,16]
    param gain = %1 : f32[16]
    param fc = %2 : bf16[16,48]
    param bias = %3 {cuts="data:2@0"} : f32[24]
    param proj = %4 : bf16[48,32]
    %5, %6 = rms_norm(%0, %1) {eps=1e-05} : bf16[32,16], f32[32,1]
    %7 = matmul(%5, %2) {trans_a=false, trans_b=false} : bf16[32,48]
    %8 = all_gather(%3) {axis="data", dims=[0], size=2} : f32[48]
    %9 = cast(%8) {to="bf16"} : bf16[48]
    %10 = add(%7, %9) : bf16[32,48]
    %11 = gelu(%10) : bf16[32,48]
    %12 = matmul(%11, %4) {trans_a=false, trans_b=false} : bf16[32,32]
    result y = %12
  })");
  EXPECT_TRUE(float8_products(after, in_fp8()));
  verify(after);
  EXPECT_EQ(after.dtype(products_of(after)[1]->inputs[0]), DType::kF8E4M3);
  EXPECT_EQ(test::count_ops(after, "all_gather"), 1);
}

// Llama's MLP, backward: what becomes of the gradient of silu(gate) * up, and the four products that read it.
Graph gate_gradient_graph() {
  return parse(R"(graph g {
    input x = %0 : bf16[32,16]
    param gain = %1 : f32[16]
    param gate = %2 : bf16[48,16]
    param up = %3 : bf16[48,16]
    param down = %4 : bf16[16,48]
    input dx = %5 : bf16[32,16]
    input rstd = %6 : f32[32,1]
    %7, %8 = rms_norm(%0, %1) {eps=1e-05} : bf16[32,16], f32[32,1]
    %9 = matmul(%7, %2) {trans_a=false, trans_b=true} : bf16[32,48]
    %10 = matmul(%7, %3) {trans_a=false, trans_b=true} : bf16[32,48]
    %11 = silu(%9) : bf16[32,48]
    %12 = rms_norm_grad(%5, %0, %1, %6) #backward : bf16[32,16]
    %13 = matmul(%12, %4) {trans_a=false, trans_b=false} #backward : bf16[32,48]
    %14 = mul(%13, %10) #backward : bf16[32,48]
    %15 = mul(%13, %11) #backward : bf16[32,48]
    %16 = silu_grad(%9, %14) #backward : bf16[32,48]
    %17 = matmul(%16, %2) {trans_a=false, trans_b=false} #backward : bf16[32,16]
    %18 = matmul(%15, %3) {trans_a=false, trans_b=false} #backward : bf16[32,16]
    %19 = add(%17, %18) #backward : bf16[32,16]
    %20 = mul(%19, %19) #backward : bf16[32,16]
    %21 = matmul(%16, %7) {trans_a=true, trans_b=false} #backward : bf16[48,16]
    %22 = matmul(%15, %7) {trans_a=true, trans_b=false} #backward : bf16[48,16]
    result dx = %20
    result dgate = %21
    result dup = %22
  })");
}

TEST(Float8Products, TakesTheGradientsOfAGate) {
  PassContext context = in_fp8();
  context.loss_weight = 0x1p-4;
  Graph before = gate_gradient_graph(), after = before;
  EXPECT_TRUE(float8_products(after, context));
  verify(after);
  std::vector<const Node*> products = products_of(after);
  ASSERT_EQ(products.size(), 7u);
  for (size_t i : {2, 3, 4, 5, 6}) EXPECT_EQ(after.dtype(products[i]->inputs[0]), DType::kF8E5M2) << i;
  for (size_t i : {5, 6}) EXPECT_EQ(after.dtype(products[i]->inputs[1]), DType::kF8E4M3) << i;
  EXPECT_EQ(products[5]->inputs[1], products[6]->inputs[1]) << "transposed twice";
  std::vector<HostTensor> arguments = test::random_arguments(before);
  Interpretation was = interpret(before, arguments), is = interpret(after, arguments);
  for (size_t r = 0; r < 3; ++r) EXPECT_LT(relative_error(is.results[r], was.results[r]), 0.15) << "result " << r;
}

TEST(Float8Products, LeavesProductsOfGeluWhoseNumbersAreSaid) {
  Graph after = mlp_graph();
  const ValueId kept = products_of(after)[1]->outputs[0];
  change_nodes(after, [&](Node& node) {
    if (node.outputs[0] != kept) return false;
    node.attrs.set("result", std::string("bf16"));
    return true;
  });
  EXPECT_TRUE(float8_products(after, in_fp8()));
  std::vector<const Node*> products = products_of(after);
  EXPECT_EQ(after.dtype(products[0]->inputs[0]), DType::kF8E4M3);
  EXPECT_EQ(after.dtype(products[1]->inputs[0]), DType::kBF16);
}

// x, a weight (V, C), targets and dloss.
Graph classifier_graph() {
  return parse(R"(graph g {
    input x = %0 : bf16[32,16]
    param gain = %1 : f32[16]
    param w = %2 : bf16[48,16]
    input targets = %3 : i32[32]
    input dloss = %4 : f32[32]
    %5, %6 = rms_norm(%0, %1) {eps=1e-05} : bf16[32,16], f32[32,1]
    %7, %8, %9, %10 = classifier(%5, %2, %3, %4) {chunk=16, classes=40} #backward : f32[32], bf16[32,16], f32[48,16], bf16[16,48]
    result losses = %7
    result dx = %8
    result dw = %9
  })");
}

TEST(Float8Products, GivesTheClassifierOperandsOfItsOwn) {
  Graph before = classifier_graph(), after = before;
  EXPECT_TRUE(float8_products(after, in_fp8()));
  verify(after);
  const Node& node = after.nodes().back();
  ASSERT_EQ(node.op, &op::classifier);
  ASSERT_EQ(node.inputs.size(), 11u);
  EXPECT_EQ(after.dtype(node.inputs[4]), DType::kF8E4M3);
  EXPECT_EQ(after.type(node.outputs[4]), (ValueType{DType::kF8E5M2, {16, 48}}));
  std::vector<HostTensor> arguments = test::random_arguments(before);
  Interpretation was = interpret(before, arguments), is = interpret(after, arguments);
  for (size_t r = 0; r < 3; ++r) EXPECT_LT(relative_error(is.results[r], was.results[r]), 0.1) << "result " << r;
  EXPECT_FALSE(float8_products(after, in_fp8())) << "converted twice";
}

// The gradient of a logit is that of its row's loss at most, which is the largest number; so nothing ever overflows.
TEST(Float8Products, TheLossBoundsGradientsOfLogits) {
  Graph graph = classifier_graph();
  float8_products(graph, in_fp8());
  const Node& node = graph.nodes().back();
  graph.add_result("narrow", node.outputs[4]);
  std::vector<HostTensor> arguments = test::random_arguments(graph);
  for (double& v : arguments[2].data) v *= 32;  // sure of what is mostly wrong
  HostTensor values = interpret(graph, arguments).results.back();
  double most = 0;
  for (double v : values.data) most = std::max(most, std::fabs(v));
  EXPECT_LE(most, 57344);
  EXPECT_GT(most, 28672) << "of the range nothing is wasted";
}

// What backends without the kernel compute.
TEST(Float8Products, TheClassifierInPartsIsTheSame) {
  Graph whole = classifier_graph();
  float8_products(whole, in_fp8());
  const Node& node = whole.nodes().back();
  Graph decomposed("parts");
  GraphBuilder g(decomposed);
  ValueIds inputs;
  for (size_t i = 0; i < 8; ++i)
    inputs.push_back(g.input(fmt::format("x{}{}", i, i < 6 ? "" : "_positive"), whole.type(node.inputs[i])));
  ValueId scale = g.input("scale_positive", {DType::kF32, {}});
  inputs.insert(inputs.end(), {transpose(g, inputs[5], {1, 0}), scale, div(g, constant(g, 1), scale)});
  Graph alone = decomposed;
  GraphBuilder h(alone);
  for (ValueId value : node.op->decompose(g, node, inputs)) decomposed.add_result("r", value);
  for (ValueId value : h.add(op::classifier, inputs, node.attrs)) alone.add_result("r", value);
  test::expect_same_meaning(alone, decomposed, 0.02);
}

}  // namespace
}  // namespace tokamak
