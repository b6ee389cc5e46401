#include "passes/fused_optimizer.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

std::string update_graph(const std::string& second_decay, const std::string& second_lr) {
  return R"(graph g {
    param p = %0 : f32[2,2]
    param q = %1 : f32[3]
    state mp = %2 : f32[2,2]
    state mq = %3 : f32[3]
    state vp_positive = %4 : f32[2,2]
    state vq_positive = %5 : f32[3]
    input lr = %6 : f32[]
    input lr2 = %7 : f32[]
    input scale = %8 : f32[]
    input step_positive = %9 : f32[]
    %10 = exp(%0) : f32[2,2]
    %11, %12, %13 = adamw(%0, %10, %2, %4, %6, %8, %9) {beta1=0.9, beta2=0.95, decay=0.1, eps=1e-08} : f32[2,2], f32[2,2], f32[2,2]
    %14 = exp(%1) : f32[3]
    %15, %16, %17 = adamw(%1, %14, %3, %5, )" +
         second_lr + R"(, %8, %9) {beta1=0.9, beta2=0.95, decay=)" + second_decay +
         R"(, eps=1e-08} : f32[3], f32[3], f32[3]
    update %0 = %11
    update %2 = %12
    update %4 = %13
    update %1 = %15
    update %3 = %16
    update %5 = %17
  })";
}

TEST(FusedOptimizer, JoinsAllTensorsOfOneFamily) {
  Graph before = parse(update_graph("0.0", "%6")), after = before;
  EXPECT_TRUE(fused_optimizer(after, {}));
  verify(after);
  ASSERT_EQ(after.nodes().size(), 3u) << print(after);
  EXPECT_EQ(print(after, after.nodes()[2]),
            "%12, %13, %14, %15, %16, %17 = multi_adamw(%6, %8, %9, %0, %10, %2, %4, %1, %11, %3, %5) {beta1=0.9, "
            "beta2=0.95, decay=0.1, decayed=[1,0], eps=1e-08} : f32[2,2], f32[2,2], f32[2,2], f32[3], f32[3], f32[3]");
  test::expect_same_meaning(before, after);
}

TEST(FusedOptimizer, LeavesOtherRatesAndDecaysApart) {
  for (auto [decay, lr] : {std::pair{"0.0", "%7"}, std::pair{"0.2", "%6"}}) {
    Graph graph = parse(update_graph(decay, lr));
    EXPECT_FALSE(fused_optimizer(graph, {}));
    EXPECT_EQ(test::count_ops(graph, "adamw"), 2);
  }
}

}  // namespace
}  // namespace tokamak
