#include "cost/price.h"

#include "cost/link_ways.h"
#include "graph/single_node.h"
#include "graph/text.h"
#include "ops/all_ops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak {
namespace {

Target target() {
  Target t;
  t.f32_flops = 1e9;
  t.bf16_flops = 4e9;
  t.pointwise_flops = 1e8;
  t.memory_bandwidth = 1e6;
  t.cache_bytes = 1000;
  t.launch_seconds = 1e-3;
  t.attention_flops = 0.25e9;
  return t;
}

Price price_of(std::string_view text, const Target& t = target()) {
  Graph graph = parse_graph(text, find_op);
  return price(graph, graph.nodes().back(), t);
}

Target fast_memory() {
  Target t = target();
  t.memory_bandwidth = 1e15;
  return t;
}

constexpr const char* kMatmul = R"(graph g {
  input a = %0 : f32[100,50]
  input b = %1 : f32[50,20]
  %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[100,20]
  result y = %2
})";

TEST(Price, MatmulByTheRateOfItsOperands) {
  Price f32 = price_of(kMatmul, fast_memory());
  EXPECT_DOUBLE_EQ(f32.cost.flops, 2.0 * 100 * 50 * 20);
  EXPECT_DOUBLE_EQ(f32.cost.bytes, 4.0 * (100 * 50 + 50 * 20 + 100 * 20));
  EXPECT_FALSE(f32.memory_bound);
  EXPECT_NEAR(f32.seconds, 200e3 / 1e9 + 1e-3, 1e-9);
  Price bf16 = price_of(R"(graph g {
    input a = %0 : bf16[100,50]
    input b = %1 : bf16[50,20]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : bf16[100,20]
    result y = %2
  })",
                        fast_memory());
  EXPECT_NEAR(bf16.seconds, 200e3 / 4e9 + 1e-3, 1e-9);
}

TEST(Price, ProductsAndCopiesThatAreNoNodesYet) {
  EXPECT_DOUBLE_EQ(product_seconds(8e9, NumberFormat::kF32, target()), 8);
  EXPECT_DOUBLE_EQ(product_seconds(8e9, NumberFormat::kBf16, target()), 2);
  EXPECT_DOUBLE_EQ(copies_seconds(3e6, 4, target()), 3 + 4e-3);
}

TEST(Price, MemoryBoundWhenBytesTakeLonger) {
  Price p = price_of(kMatmul);
  EXPECT_TRUE(p.memory_bound);
  EXPECT_NEAR(p.seconds, 32e3 / 1e6 + 1e-3, 1e-9);
}

TEST(Price, SmallWorkingSetsComeFromTheCache) {
  const char* text = "graph g { input a = %0 : f32[100] %1 = exp(%0) : f32[100] result y = %1 }";
  EXPECT_NEAR(price_of(text).seconds, 800 / 2e6 + 1e-3, 1e-9);
  Target small_cache = target();
  small_cache.cache_bytes = 799;
  EXPECT_NEAR(price_of(text, small_cache).seconds, 800 / 1e6 + 1e-3, 1e-9);
}

TEST(Price, AttentionReachesAShareOfTheRate) {
  Price p = price_of(R"(graph g {
    input qkv = %0 : f32[1,8,24]
    %1, %2 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=1.0, stream=0} : f32[1,8,8], f32[1,2,8]
    result y = %1
  })",
                     fast_memory());
  EXPECT_DOUBLE_EQ(p.cost.flops, 2 * 2.0 * 8 * 8 * 8 / 2);
  EXPECT_NEAR(p.seconds, p.cost.flops / (0.25 * 1e9) + 1e-3, 1e-12);
}

TEST(Price, AttentionOfF32IsNoFasterThanItsProducts) {
  constexpr const char* kText = R"(graph g {{
    input qkv = %0 : {0}[1,8,24]
    %1, %2 = attention(%0) {{causal=true, dropout=0.0, heads=2, scale=1.0, stream=0}} : {0}[1,8,8], f32[1,2,8]
    result y = %1
  }})";
  Target t = fast_memory();
  t.attention_flops = 3e9;
  t.launch_seconds = 0;
  auto rate = [&](const char* dtype) {
    Price p = price_of(fmt::format(fmt::runtime(kText), dtype), t);
    return p.cost.flops / p.seconds;
  };
  EXPECT_NEAR(rate("f32"), 0.65e9, 1);
  EXPECT_NEAR(rate("bf16"), 3e9, 1);
}

// Seconds for a FLOP, at half a microsecond where nothing is in vain.
double attention_seconds(int64_t positions, bool causal = true, int64_t window = 0) {
  Target t = fast_memory();
  t.attention_flops = 2e6;
  t.attention_tile = 16;
  t.launch_seconds = 0;
  Price p = price_of(fmt::format(R"(graph g {{
    input qkv = %0 : bf16[2,{0},24]
    %1, %2 = attention(%0) {{causal={1}, dropout=0.0, heads=2, scale=1.0, stream=0, window={2}}} : bf16[2,{0},8], f32[2,2,{0}]
    result y = %1
  }})",
                                 positions, causal, window),
                     t);
  return p.seconds / p.cost.flops;
}

TEST(Price, AttentionTakesHalfATileMoreForEachQuery) {
  EXPECT_DOUBLE_EQ(attention_seconds(16), 1e-6) << "a tile on the diagonal is computed whole";
  EXPECT_DOUBLE_EQ(attention_seconds(64), 0.5e-6 * 1.25);
  EXPECT_DOUBLE_EQ(attention_seconds(1024), 0.5e-6 * (1 + 1.0 / 64));
  EXPECT_DOUBLE_EQ(attention_seconds(16, false), 0.5e-6) << "without a mask there is no diagonal";
}

// Each query has the diagonal of its window then.
TEST(Price, AttentionWithinAWindowTakesATileForEachWindow) {
  EXPECT_DOUBLE_EQ(attention_seconds(1024, true, 64), 0.5e-6 * 1.25);
  EXPECT_DOUBLE_EQ(attention_seconds(64, true, 1024), attention_seconds(64)) << "a window that sees all";
}

TEST(Price, AttentionOverContextHasTheDiagonalOfTheWholeSequence) {
  Target t = fast_memory();
  t.attention_flops = 2e6;
  t.attention_tile = 16;
  t.launch_seconds = 0;
  Price p = price_of(R"(graph g {
    input qkv = %0 : bf16[2,8,24]
    input kv = %1 : bf16[8,8,16]
    input coordinate = %2 : i32[]
    %3, %4 = context_attention(%0, %1, %2) {dropout=0.0, heads=2, scale=1.0, stream=0} : bf16[2,8,8], f32[2,2,8]
    result y = %3
  })",
                     t);
  EXPECT_DOUBLE_EQ(p.seconds / p.cost.flops, 0.5e-6 * 1.5);
}

TEST(Price, RandomNumbersTakeTheirTimeBesideBytes) {
  const char* text = R"(graph g {
    input x = %0 : f32[100]
    input rng = %1 : i32[2]
    %2 = dropout(%0, %1) {p=0.5, stream=1} : f32[100]
    result y = %2
  })";
  EXPECT_NEAR(price_of(text).seconds, 808 / 2e6 + 1e-3, 1e-9) << "at no known rate";
  Target t = target();
  t.draw_rate = 1e4;
  EXPECT_NEAR(price_of(text, t).seconds, 808 / 2e6 + 100 / 1e4 + 1e-3, 1e-9);
}

TEST(Price, MatmulGroupPaysForBoth) {
  Price p = price_of(R"(graph g {
    input a = %0 : f32[100,50]
    input b = %1 : f32[50,20]
    input c = %2 : f32[20]
    %3 = fused_matmul(%0, %1, %2) : f32[100,20] {
      graph body {
        input a = %0 : f32[100,50]
        input b = %1 : f32[50,20]
        input c = %2 : f32[20]
        %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[100,20]
        %4 = add(%3, %2) : f32[100,20]
        result y = %4
      }
    }
    result y = %3
  })",
                     fast_memory());
  EXPECT_DOUBLE_EQ(p.cost.flops, 200e3 + 2000);
  EXPECT_NEAR(p.seconds, 200e3 / 1e9 + 2000 / 1e8 + 1e-3, 1e-9);
}

constexpr const char* kGather = R"(graph g {
  input x = %0 : f32[500]
  %1 = all_gather(%0) {axis="data", dims=[0], size=2} : f32[1000]
  result y = %1
})";

TEST(Price, ACollectiveTakesItsLinkAndItsLatency) {
  Target t = fast_memory();
  t.link_bandwidth = 1e6, t.link_seconds = 3e-3, t.gather_share = 0.5, t.link_units = 0.2;
  Price p = price_of(kGather, t);
  EXPECT_DOUBLE_EQ(p.link, 2000 / 0.5e6);
  EXPECT_DOUBLE_EQ(p.fixed, 3e-3);
  EXPECT_DOUBLE_EQ(p.seconds, p.link + p.fixed);
  EXPECT_DOUBLE_EQ(p.taken_share, 0.2);
  t.axis_links["data"] = {2e6, 1e-3};
  p = price_of(kGather, t);
  EXPECT_DOUBLE_EQ(p.seconds, 2000 / 1e6 + 1e-3) << "the axis has links of its own";
  EXPECT_DOUBLE_EQ(p.taken_share, 0.2);
  t.axis_links["data" + std::string(kUnitsTaken)] = {0.05, 0};
  EXPECT_DOUBLE_EQ(price_of(kGather, t).taken_share, 0.05) << "and takes less of the device";
  EXPECT_DOUBLE_EQ(units_taken(t, "tensor"), 0.2);
  t.memory_bandwidth = 1e6;
  p = price_of(kGather, t);
  EXPECT_DOUBLE_EQ(p.memory, p.cost.bytes / 1e6);
  EXPECT_DOUBLE_EQ(p.seconds, p.memory + 1e-3) << "memory takes longer";
  EXPECT_DOUBLE_EQ(p.taken_share, p.memory / p.seconds);
}

// Of many nodes: what waits least is taken for little, what sends most for much.
TEST(Price, ACollectiveGoesTheFastestWay) {
  Target t = fast_memory();
  auto way = [&](std::string_view name, double bandwidth, double seconds) {
    t.axis_links["data" + std::string(name)] = {bandwidth, seconds};
  };
  way("", 1e6, 8e-3);
  way(kRingLowWay, 0.5e6, 5e-3);
  way(kSumWay, 1e6, 16e-3);
  way(kTreeWay, 0.5e6, 1e-3);
  EXPECT_DOUBLE_EQ(price_of(kGather, t).seconds, 2000 / 0.5e6 + 5e-3) << "no tree gathers";
  constexpr const char* kSum = R"(graph g {{
    input x = %0 : f32[{0}]
    %1 = all_reduce(%0) {{axis="data", reduction="sum", size=2}} : f32[{0}]
    result y = %1
  }})";
  EXPECT_DOUBLE_EQ(price_of(fmt::format(kSum, 100), t).seconds, 400 / 0.5e6 + 1e-3) << "by tree";
  Price much = price_of(fmt::format(kSum, 100000), t);
  EXPECT_DOUBLE_EQ(much.seconds, 400000 / 1e6 + 16e-3) << "by ring";
  EXPECT_DOUBLE_EQ(much.fixed, 16e-3);
  way(kSwitchWay, 2e6, 2e-3);
  EXPECT_DOUBLE_EQ(price_of(fmt::format(kSum, 100000), t).seconds, 400000 / 2e6 + 2e-3) << "by switches";
  way(kParallelTreesWay, 0.75e6, 1e-3);
  EXPECT_DOUBLE_EQ(price_of(kGather, t).seconds, 2000 / 0.75e6 + 1e-3) << "by parallel trees";
}

TEST(Price, AViewTakesNothing) {
  Price p = price_of("graph g { input x = %0 : f32[4] %1 = reshape(%0) {shape=[2,2]} : f32[2,2] result y = %1 }");
  EXPECT_EQ(p.seconds, 0);
}

TEST(Price, ATransferTakesItsBytesAndALatency) {
  Target t = target();
  t.link_bandwidth = 1e6, t.link_seconds = 3e-3;
  EXPECT_DOUBLE_EQ(transfer_seconds(2000, "pipe", t), 2e-3 + 3e-3);
}

TEST(Price, TakesWhatWasMeasuredAndWhatALongRunLeavesOfIt) {
  constexpr const char* kLow = R"(graph g {
    input a = %0 : bf16[100,50]
    input b = %1 : bf16[50,20]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : bf16[100,20]
    result y = %2
  })";
  constexpr const char* kEight = R"(graph g {
    input a = %0 : f8e4m3[100,50]
    input b = %1 : f8e4m3[20,50]
    input a_scale = %2 : f32[]
    input b_scale = %3 : f32[]
    %4 = matmul(%0, %1, %2, %3) {result="bf16", trans_a=false, trans_b=true} : bf16[100,20]
    result y = %4
  })";
  using Case = std::tuple<const char*, double, double>;
  for (auto [text, rate, seconds] :
       {Case{kMatmul, 1, 3}, Case{kLow, 1, 6}, Case{kLow, 2, 4.5}, Case{kEight, 1, 6}, Case{kEight, 2, 4.5}}) {
    Graph graph = parse_graph(text, find_op);
    const Node& node = graph.nodes()[0];
    Platform platform = target();
    platform.target.sustained_share = 0.5;
    double reached = node_cost(graph, node).flops / 3;
    platform.target.bf16_flops = platform.target.fp8_flops = rate * reached;  // all of the rate, or half of it
    platform.tuning.measured_seconds[kernel_key(graph, node)] = 3;
    EXPECT_DOUBLE_EQ(price(graph, node, platform).seconds, seconds);
  }
}

}  // namespace
}  // namespace tokamak
