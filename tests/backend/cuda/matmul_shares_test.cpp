#include "backend/cuda/matmul_shares.h"

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/matmul_problem.h"
#include "base/error.h"
#include "config/config.h"
#include "graph/builder.h"
#include "ops/classifier.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "tests/backend/cuda/matmul_step.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tokamak::cuda {
namespace {

TEST(matmul_shares, adds_up_the_nodes_of_a_problem) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId a = g.input("a", {DType::kF32, {4, 8}}), b = g.input("b", {DType::kF32, {8, 8}});
  graph.add_result("r", matmul(g, gelu(g, matmul(g, matmul(g, a, b), b)), b, false, true));
  // The second pair has the same problem; what takes no time of its own is no kernel.
  auto shares = matmul_shares(graph, std::vector<double>{1, 2, 5, 2});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_DOUBLE_EQ(shares.at("f32 4x8x8 nn"), 0.3);
  EXPECT_DOUBLE_EQ(shares.at("f32 4x8x8 nt"), 0.2);
  EXPECT_EQ(matmul_shares(graph, std::vector<double>{1, 2, 5, 0}).size(), 1u);
  EXPECT_TRUE(matmul_shares(graph, std::vector<double>(4, 0.0)).empty());
  EXPECT_THROW(matmul_shares(graph, std::vector<double>{1}), InternalError);
}

std::map<std::string, double> shares_of_step(const RunConfig& config) {
  CompiledStep step = compile_step(config, nominal_platform());
  const Plan& plan = step.programs[0].plan;
  std::vector<double> seconds(plan.graph.nodes().size());
  for (const Launch& launch : plan.launches) seconds[size_t(launch.node)] = launch.seconds;
  return matmul_shares(plan.graph, seconds);
}

TEST(matmul_shares, of_a_training_step) {
  RunConfig config;
  config.train.batch = 64;
  config.compile.precision = Precision::kBf16;
  auto shares = shares_of_step(config);
  double all = 0;
  for (const auto& [problem, share] : shares) {
    EXPECT_GT(share, 0) << problem;
    all += share;
  }
  EXPECT_GT(all, 0.6);
  EXPECT_LT(all, 1);
  EXPECT_GT(shares.at("bf16 65536x2304x768 nn +bias"), 0.03) << "twelve times in a step";
}

// The classifier's node stands for several matmuls; a last chunk of fewer rows has its own.
TEST(matmul_shares, the_classifiers_parts_by_their_work) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueType x{DType::kBF16, {10, 16}}, weight{DType::kBF16, {128, 16}};
  ValueId rows = g.input("x", x), w = g.input("w", weight);
  ValueId targets = g.input("t", {DType::kI32, {10}}), dloss = g.input("d", {DType::kF32, {10}});
  g.add(op::classifier, {rows, w, targets, dloss}, {{"chunk", int64_t(4)}, {"classes", int64_t(100)}});
  auto shares = matmul_shares(graph, std::vector<double>{3});
  double all = 0;
  for (const auto& [problem, share] : shares) all += share;
  EXPECT_NEAR(all, 1, 1e-12);
  EXPECT_NEAR(shares.at("bf16 4x128x16 nt"), 8.0 / 30, 1e-12);
  EXPECT_NEAR(shares.at("bf16 2x16x128 nn"), 2.0 / 30, 1e-12);
  EXPECT_EQ(shares.size(), 7u);
}

}  // namespace
}  // namespace tokamak::cuda
