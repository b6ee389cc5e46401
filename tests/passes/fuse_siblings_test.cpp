// Groups that read the same values and not each other.
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::count_ops;
using test::parse;

Graph fused(const std::string& text) {
  Graph before = parse(text), after = before;
  form_groups(after, {});
  fuse(after, {});
  verify(after);
  test::expect_same_meaning(before, after, 1e-12);
  return after;
}

// The two gradients of a gated unit, with what comes between them in the place of `between`.
std::string gated(std::string_view between, std::string_view results = "", std::string_view shape = "[128,256]") {
  return fmt::format(R"(graph g {{
    input gate = %0 : f32{0}
    input up = %1 : f32{0}
    input d = %2 : f32{0}
    input w = %3 : f32[256,256]
    %4 = matmul(%2, %3) {{trans_a=false, trans_b=false}} : f32{0}
    %5 = silu(%0) : f32{0}
    %6 = mul(%4, %5) : f32{0}
    {1}
    %9 = mul(%4, %1) : f32{0}
    %10 = silu_grad(%0, %9) : f32{0}
    result dup = %6
    result dgate = %10
    result w = %8
    {2}
  }})",
                     shape, between, results);
}

constexpr const char* kApart = R"(%7 = matmul(%1, %3) {trans_a=false, trans_b=false} : f32[128,256]
    %8 = matmul(%7, %3) {trans_a=false, trans_b=false} : f32[128,256])";

TEST(FuseSiblings, ReadWhatBothReadOnce) {
  Graph after = fused(gated(kApart));
  ASSERT_EQ(count_ops(after, "flat"), 1) << print(after);
  for (const Node& node : after.nodes())
    if (node.op->name == "flat") EXPECT_EQ(node.inputs.size(), 3u);
}

TEST(FuseSiblings, StayApartWhereTheFirstIsReadBetweenThem) {
  Graph after = fused(gated(R"(%7 = matmul(%6, %3) {trans_a=false, trans_b=false} : f32[128,256]
    %8 = matmul(%7, %3) {trans_a=false, trans_b=false} : f32[128,256])"));
  EXPECT_EQ(count_ops(after, "flat"), 2) << print(after);
}

TEST(FuseSiblings, StayApartWhereLittleIsRead) {
  EXPECT_EQ(count_ops(fused(R"(graph g {
    input x = %0 : f32[8,4]
    input w = %1 : f32[4,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[8,4]
    %3 = exp(%2) : f32[8,4]
    %4 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[8,4]
    %5 = mul(%2, %4) : f32[8,4]
    result a = %3
    result b = %5
  })"),
                      "flat"),
            2);
}

// The first reads a value that nobody needs any more by the time of the second: together they would keep it.
TEST(FuseSiblings, KeepNothingLonger) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[128,256]
    input w = %1 : f32[256,256]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[128,256]
    %3 = matmul(%2, %1) {trans_a=false, trans_b=false} : f32[128,256]
    %4 = mul(%2, %3) : f32[128,256]
    %5 = matmul(%2, %1) {trans_a=false, trans_b=false} : f32[128,256]
    %6 = mul(%2, %5) : f32[128,256]
    result a = %4
    result b = %6
  })");
  EXPECT_EQ(count_ops(after, "flat"), 2) << print(after);
}

// Sums of rows, of which the first also reads a vector that nobody needs later: it is small beside what both read.
TEST(FuseSiblings, AreRowsToo) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[512,2048]
    input b = %1 : f32[2048,1]
    input c = %2 : f32[1,1]
    %3 = matmul(%1, %2) {trans_a=false, trans_b=false} : f32[2048,1]
    %4 = reshape(%3) {shape=[1,2048]} : f32[1,2048]
    %5 = mul(%0, %4) : f32[512,2048]
    %6 = reduce_sum(%5) {dims=[1], keep=true} : f32[512,1]
    %7 = mul(%0, %0) : f32[512,2048]
    %8 = reduce_sum(%7) {dims=[1], keep=true} : f32[512,1]
    result a = %6
    result b = %8
  })");
  EXPECT_EQ(count_ops(after, "row"), 1) << print(after);
}

}  // namespace
}  // namespace tokamak
