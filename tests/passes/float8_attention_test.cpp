// What attention gives, and its gradient, in eight bits (compile.fp8_attention).
#include "passes/float8_choice.h"
#include "passes/float8_products.h"
#include "tests/passes/float8_context.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace tokamak {
namespace {

using test::products_of;

PassContext in_fp8(bool attention) {
  PassContext context = test::in_fp8();
  context.options.fp8_attention = attention;
  return context;
}

Graph forward_graph(double dropout = 0) {
  return test::parse(fmt::format(R"(graph g {{
    input x = %0 : bf16[2,16,32]
    param gain = %1 : f32[32]
    param qkv = %2 : bf16[32,96]
    param bias = %3 : bf16[96]
    param proj = %4 : bf16[32,48]
    input rng = %5 : i32[2]
    %6, %7 = rms_norm(%0, %1) {{eps=1e-05}} : bf16[2,16,32], f32[2,16,1]
    %8 = matmul(%6, %2) {{trans_a=false, trans_b=false}} : bf16[2,16,96]
    %9 = add(%8, %3) : bf16[2,16,96]
    %10, %11 = attention(%9{}) {{causal=true, dropout={:.1f}, heads=2, scale=0.25, stream=0}} : bf16[2,16,32], f32[2,2,16]
    %12 = matmul(%10, %4) {{trans_a=false, trans_b=false}} : bf16[2,16,48]
    result y = %12
  }})",
                                 dropout > 0 ? ", %5" : "", dropout));
}

// Values that are as large as their bound allows, and alike, so that their mean is as large.
TEST(Float8Attention, ItsResultIsBoundedByItsProduct) {
  Graph before = forward_graph(), after = before;
  EXPECT_TRUE(float8_products(after, in_fp8(true)));
  verify(after);
  ValueId result = products_of(after)[1]->inputs[0];
  ASSERT_EQ(after.dtype(result), DType::kF8E4M3);
  after.add_result("result", result);
  std::vector<HostTensor> arguments = test::random_arguments(before);
  for (int64_t token = 0; token < 32; ++token)
    for (int64_t c = 0; c < 32; ++c) arguments[0][token * 32 + c] = c % 2 ? 1 : -1;
  for (double& gain : arguments[1].data) gain = 2;
  for (int64_t c = 0; c < 32; ++c) arguments[2][c * 96 + 70] = c % 2 ? 8 : -8;
  Interpretation was = interpret(before, arguments), is = interpret(after, arguments);
  EXPECT_LT(test::difference(is.results[0], was.results[0]), 0.1);
  double most = 0;
  for (double v : is.results[1].data) most = std::max(most, std::fabs(v));
  EXPECT_LE(most, 448) << "nothing overflows";
  EXPECT_GT(most, 350) << "of the range little is wasted";
}

TEST(Float8Attention, IsLeftUnlessItIsAskedFor) {
  for (auto [dropout, asked] : {std::pair{0.0, false}, {0.1, true}}) {  // of which some probabilities are more than one
    Graph graph = forward_graph(dropout);
    EXPECT_TRUE(float8_products(graph, in_fp8(asked)));
    EXPECT_EQ(graph.dtype(products_of(graph)[0]->inputs[0]), DType::kF8E4M3);
    EXPECT_EQ(graph.dtype(products_of(graph)[1]->inputs[0]), DType::kBF16) << dropout;
  }
}

Graph compiled_step(bool attention, const char* family = "gpt2") {
  ModelConfig model{.family = family, .layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 48};
  Graph step = test::step_of(model);
  PassContext context = in_fp8(attention);
  context.loss_weight = 1.0 / (8 * 16);
  run_passes(step, PassStage::kForward, context);
  run_passes(step, PassStage::kWhole, context);
  return step;
}

// Of two blocks with four weights each, forward and both gradients; and the logits.
TEST(Float8Attention, AllProductsOfABlockCanHaveEightBits) {
  for (bool attention : {false, true}) {
    Graph step = compiled_step(attention);
    int eight_bits = 0;
    for (const Node* product : products_of(step)) eight_bits += has_float8_operand(step, *product);
    EXPECT_EQ(eight_bits, 2 * (attention ? 12 : 8) + 1);
  }
}

// Of Llama, whose queries, keys and values are one product: its gradients, and attention's projection forward and of
// its weights.
TEST(Float8Attention, TakesWhatRotaryPositionsTurn) {
  std::array<int, 2> eight_bits{};
  for (bool attention : {false, true}) {
    Graph step = compiled_step(attention, "llama");
    verify(step);
    for (const Node* product : products_of(step)) eight_bits[attention] += has_float8_operand(step, *product);
  }
  EXPECT_EQ(eight_bits[1] - eight_bits[0], 2 * 4);
}

// The updates of a step, each as far from those in bf16 as where attention has 16 bits, or about.
TEST(Float8Attention, GradientsStayAsCloseAsOthers) {
  Graph step = test::step_of({.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 48});
  std::vector<HostTensor> arguments = test::step_arguments(step);
  Interpretation exact = interpret(step, arguments);
  std::array<double, 2> errors{};
  for (bool attention : {false, true}) {
    Interpretation got = interpret(compiled_step(attention), arguments);
    for (size_t i = 0; i < step.updates().size(); ++i) {
      const std::string& name = step.argument_of(step.updates()[i].target)->name;
      if (!name.starts_with("adam.m.")) continue;
      double squares = 0, differences = 0;
      for (int64_t e = 0; e < exact.updates[i].size(); ++e) {
        squares += std::pow(exact.updates[i][e], 2);
        differences += std::pow(got.updates[i][e] - exact.updates[i][e], 2);
      }
      errors[attention] = std::max(errors[attention], std::sqrt(differences / squares));
    }
  }
  EXPECT_LT(errors[1], 1.5 * errors[0] + 0.01) << errors[0];
  EXPECT_NE(errors[1], errors[0]);
}

}  // namespace
}  // namespace tokamak
