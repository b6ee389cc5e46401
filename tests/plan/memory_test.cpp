#include "plan/memory.h"

#include "graph/text.h"
#include "ops/all_ops.h"
#include "plan/units.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_kernels.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// At %3 both %2 (128 KiB) and %3 (128 KiB) are alive; afterwards only scalars.
constexpr const char* kText = R"(graph g {
  input x = %0 : f32[256,8]
  param wte.weight = %1 : f32[8,128]
  %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[256,128]
  %3 = softmax(%2) : f32[256,128]
  %4 = reduce_sum(%3) {dims=[0,1], keep=false} : f32[]
  result loss = %4
})";

Plan plan() { return make_plan(parse_graph(kText, find_op), {}); }

TEST(Memory, PeakNamesTheLargestTensors) {
  MemoryPeak peak = find_peak(plan());
  EXPECT_EQ(peak.node, 1);
  ASSERT_EQ(peak.largest.size(), 4u);
  EXPECT_EQ(peak.largest[0].name, "%2 = matmul of wte.weight");
  EXPECT_EQ(peak.largest[0].bytes, 128 * 1024);
  EXPECT_EQ(peak.largest[1].name, "%3 = softmax");
  EXPECT_EQ(peak.largest[2].name, "x");
  EXPECT_EQ(peak.largest[3].name, "wte.weight");
  EXPECT_EQ(find_peak(plan(), 1).largest.size(), 1u);
}

TEST(Memory, FormattedByKind) {
  std::string text = format_memory(plan());
  for (const char* piece : {"parameters", "4.00 KiB", "inputs", "8.00 KiB", "intermediates", "256.00 KiB",
                            "%2 = matmul of wte.weight f32[256,128] (128.00 KiB)"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " in\n" << text;
}

// What the kernels share is as much as one of them needs.
TEST(Memory, ScratchOfKernelsCounts) {
  auto kernels = test::fake_kernels({.scratch_bytes = [](const Graph& graph, const Node& node) {
    return num_bytes(graph.type(node.outputs[0])) / 2;  // 64 KiB of the largest
  }});
  Plan with = make_plan(parse_graph(kText, find_op), {Target(), kernels});
  EXPECT_EQ(plan().scratch_bytes, 0);
  EXPECT_EQ(with.scratch_bytes, 64 * 1024);
  EXPECT_EQ(with.total_bytes(), plan().total_bytes() + 64 * 1024);
  EXPECT_NE(format_memory(with).find("scratch          64.00 KiB"), std::string::npos) << format_memory(with);
  expect_user_error([&] { require_fits(with, plan().total_bytes(), [] { return std::string(); }); },
                    {"scratch memory of kernels 64.00 KiB"});
}

TEST(Memory, FitsExactly) {
  EXPECT_NO_THROW(require_fits(plan(), plan().total_bytes(), [] {
    ADD_FAILURE() << "nothing to advise";
    return std::string();
  }));
}

TEST(Memory, ErrorSaysWhatIsLargestAndWhatToChange) {
  expect_user_error([] { require_fits(plan(), 200 * 1024, [] { return std::string("set this"); }); },
                    {"[memory]", "200.00 KiB", "268.00 KiB", "%2 = matmul of wte.weight f32[256,128]", "; set this"});
}

TEST(Units, Readable) {
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(5.0 * (1ll << 40)), "5.00 TiB");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1.25e9), "1.25 G");
  EXPECT_EQ(format_count(1.25e9, "FLOP/s"), "1.25 GFLOP/s");
  EXPECT_EQ(format_count(9, "FLOP"), "9 FLOP");
  EXPECT_EQ(format_count(2e18), "2.00 E");
  EXPECT_EQ(format_count(1e30), "1.00e+30");
  EXPECT_EQ(format_bytes(1e30), "1.00e+30 B");
}

}  // namespace
}  // namespace tokamak
