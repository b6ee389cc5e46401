#include "passes/fused_optimizer.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

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
    EXPECT_TRUE(fused_optimizer(graph, {}));
    EXPECT_EQ(test::count_ops(graph, "multi_adamw"), 2);
  }
}

TEST(FusedOptimizer, LeavesOtherTypesOfStatesApart) {
  std::string text = update_graph("0.0", "%6");
  for (const char* state : {"state mq = %3 : f32", "state vq_positive = %5 : f32"})
    text.replace(text.find(state), std::string(state).size(),
                 std::string(state).substr(0, std::string(state).size() - 3) + "bf16");
  text.replace(text.find(": f32[3], f32[3], f32[3]"), 24, ": f32[3], bf16[3], bf16[3]");
  Graph graph = parse(text);
  EXPECT_TRUE(fused_optimizer(graph, {}));
  verify(graph);
  EXPECT_EQ(test::count_ops(graph, "multi_adamw"), 2);
}

// Of four tensors; what comes of each is gathered from two ranks.
std::string gathering_text() {
  std::string arguments, nodes, updates;
  for (int i = 0; i < 4; ++i) {
    arguments += fmt::format(
        "param p{0} = %{1} : f32[256,1024]\nstate m{0} = %{2} : f32[256,1024]\n"
        "state v{0}_positive = %{3} : f32[256,1024]\ninput g{0} = %{4} : f32[256,1024]\n",
        i, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
    nodes += fmt::format(
        "%{4}, %{5}, %{6} = adamw(%{0}, %{3}, %{1}, %{2}, %16, %17, %18) {{beta1=0.9, beta2=0.95, "
        "decay=0.1, eps=1e-08}} : f32[256,1024], f32[256,1024], f32[256,1024]\n"
        "%{7} = all_gather(%{4}) {{axis=\"data\", dims=[0], size=2}} : f32[512,1024]\n"
        "result r{8} = %{7}\n",
        4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3, 19 + 4 * i, 20 + 4 * i, 21 + 4 * i, 22 + 4 * i, i);
    updates += fmt::format("update %{} = %{}\nupdate %{} = %{}\n", 4 * i + 1, 20 + 4 * i, 4 * i + 2, 21 + 4 * i);
  }
  return "graph g {\n" + arguments +
         "input lr = %16 : f32[]\ninput scale = %17 : f32[]\ninput step_positive = %18 : f32[]\n" + nodes + updates +
         "}";
}

// Two MiB are gathered of each.
TEST(FusedOptimizer, WhatIsGatheredIsUpdatedBucketByBucket) {
  for (auto [mib, kernels] : {std::pair<int64_t, int>{4, 2}, {6, 2}, {16, 1}, {0, 4}}) {
    Graph graph = parse(gathering_text());
    PassContext context;
    context.bucket_mib = mib;
    EXPECT_TRUE(fused_optimizer(graph, context));
    verify(graph);
    EXPECT_EQ(test::count_ops(graph, "multi_adamw"), kernels) << mib;
    ValueIds gathered, results;
    for (const Node& node : graph.nodes())
      if (node.op->name == "all_gather") gathered.push_back(node.outputs[0]);
    for (const Result& result : graph.results()) results.push_back(result.value);
    EXPECT_EQ(gathered, results) << "in the order they had";
    EXPECT_EQ(graph.nodes()[mib == 4   ? 3
                            : mib == 6 ? 4
                            : mib == 0 ? 2
                                       : 0]
                  .op->name,
              "multi_adamw")
        << "the second after what the first made is gathered";
  }
}

}  // namespace
}  // namespace tokamak
