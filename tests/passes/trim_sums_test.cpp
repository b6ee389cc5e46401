#include "passes/trim_sums.h"

#include "config/mesh_config.h"
#include "passes/eliminate_dead_code.h"
#include "passes/step_mesh.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

PassContext context_of(int64_t zero) {
  PassContext context;
  context.mesh = step_mesh({.data = 3, .zero = zero});
  context.zero = zero;
  context.slots = 1;
  return context;
}

// A gradient is added as it is; whoever reads the sum has the rows that the parameter has.
TEST(TrimSums, SumsOfGradientsHaveNoRowsOfZeros) {
  PassContext context = context_of(1);
  const char* accumulation = R"(graph g {
    param w = %0 {global=[7,4], padding="0x1-", role="matrix"} : f32[9,4]
    state grad.w = %1 {global=[7,4], padding="0x1-", of="w", role="gradient_sum"} : f32[9,4]
    input dy = %2 : f32[7,4]
    %3 = pad(%2) {after=2, before=0, dim=0} #backward : f32[9,4]
    %4 = add(%1, %3) #update : f32[9,4]
    update %1 = %4
  })";
  Graph trimmed = with_sums_trimmed(test::parse(accumulation), context);
  eliminate_dead_code(trimmed, context);
  EXPECT_EQ(print(trimmed), test::canonical(R"(graph g {
    param w = %0 {global=[7,4], padding="0x1-", role="matrix"} : f32[9,4]
    state grad.w = %1 {of="w", role="gradient_sum"} : f32[7,4]
    input dy = %2 : f32[7,4]
    %3 = add(%1, %2) #update : f32[7,4]
    update %1 = %3
  })"));
  Graph update = with_sums_trimmed(test::parse(R"(graph g {
    param w = %0 {global=[7,4], padding="0x1-", role="matrix"} : f32[9,4]
    state grad.w = %1 {global=[7,4], padding="0x1-", of="w", role="gradient_sum"} : f32[9,4]
    %2 = sum_squares(%1) #update : f32[]
    %3 = sub(%0, %1) #update : f32[9,4]
    %4 = constant() {dtype="f32", shape=[9,4], value=0.0} #update : f32[9,4]
    result norm = %2
    update %0 = %3
    update %1 = %4
  })"),
                                   context);
  eliminate_dead_code(update, context);
  EXPECT_EQ(print(update), test::canonical(R"(graph g {
    param w = %0 {global=[7,4], padding="0x1-", role="matrix"} : f32[9,4]
    state grad.w = %1 {of="w", role="gradient_sum"} : f32[7,4]
    %2 = pad(%1) {after=2, before=0, dim=0} #update : f32[9,4]
    %3 = sum_squares(%2) #update : f32[]
    %4 = sub(%0, %2) #update : f32[9,4]
    %5 = constant() {dtype="f32", shape=[7,4], value=0.0} #update : f32[7,4]
    result norm = %3
    update %0 = %4
    update %1 = %5
  })"));
  for (int64_t zero : {2, 3}) {
    Graph cut = test::parse(accumulation);
    EXPECT_EQ(print(with_sums_trimmed(cut, context_of(zero))), print(cut)) << "ZeRO cuts the sums";
  }
}

}  // namespace
}  // namespace tokamak
