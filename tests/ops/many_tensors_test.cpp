#include "ops/float8_scales.h"
#include "ops/float8_weights.h"
#include "ops/multi_cast.h"
#include "ops/reduce.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Cost cost_of(const OpDef& op, std::vector<CaseInput> inputs, Attrs attrs) {
  Graph graph = case_graph({"", &op, std::move(inputs), std::move(attrs)});
  return node_cost(graph, graph.nodes()[0]);
}

TEST(ManyTensors, CostWhatTheirElementsCost) {
  std::vector<CaseInput> many{f32({16, 16}), bf16({32, 48})};
  constexpr int64_t kElements = 256 + 1536, kBytes = 4 * 256 + 2 * 1536;
  Cost cast = cost_of(op::multi_cast, many, {{"to", std::string("bf16")}});
  EXPECT_EQ(cast.flops, kElements);
  EXPECT_EQ(cast.bytes, kBytes + 2 * kElements);
  Cost joined = cost_of(op::multi_cast, {f32({16, 16}), bf16({2, 16})},
                        {{"joins", std::vector<int64_t>{2}}, {"to", std::string("bf16")}});
  EXPECT_EQ(joined.flops, 256 + 32);
  EXPECT_EQ(joined.bytes, 4 * 256 + 2 * 32 + 2 * (256 + 32)) << "as apart";
  Cost scales = cost_of(op::float8_scales, many, {{"has", Shape{1, 1}}, {"widths", Shape{256, 1536}}});
  EXPECT_EQ(scales.flops, kElements);
  EXPECT_EQ(scales.bytes, kBytes + 2 * 2 * 4) << "scales and their inverses";
  Cost weights = cost_of(op::float8_weights, many, {{"stored", Shape{3, 3}}});
  EXPECT_EQ(weights.flops, 3 * kElements);
  EXPECT_EQ(weights.bytes, 2 * kBytes + 2 * kElements + 2 * 4) << "read twice";
  EXPECT_EQ(cost_of(op::sum_squares, many, {}).flops, 2 * kElements);
}

TEST(ManyTensors, AreReadAsTheyAre) {
  for (const OpDef* op : {&op::multi_cast, &op::float8_scales, &op::float8_weights, &op::sum_squares}) {
    EXPECT_EQ(op->autocast, Autocast::kFull) << op->name;
    EXPECT_EQ(op->max_inputs, -1) << op->name;
  }
}

}  // namespace
}  // namespace tokamak::test
