#include "graph/target.h"

#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// No member has its default, and no two numbers are equal.
Target unlike_the_default() {
  Target target;
  target.name = "two \"quoted\" cores\n";
  target.units = 7;
  target.f32_flops = 1.0 / 3;
  target.bf16_flops = 2e14;
  target.tf32_flops = 3e300;
  target.memory_bandwidth = 4.000000000000001e9;
  target.pointwise_flops = 5;
  target.cache_bytes = 6e6;
  target.launch_seconds = 7e-9;
  target.attention_flops = 8.5;
  target.attention_tile = 12;
  target.draw_rate = 1.25e12;
  target.sustained_share = 0.9;
  target.matmul_bias = target.matmul_function = false;
  target.vocab_multiple = int64_t(1) << 53;
  target.chunked_classifier = target.matmul_argument = target.matmul_operand = target.matmul_operand_sums = true;
  target.matmul_prologue = true;
  target.matmul_accumulate = target.row_column_groups = true;
  target.streams = 3;
  target.link_bandwidth = 3.5e11;
  target.gather_share = 0.75;
  target.link_seconds = 9e-6;
  target.link_units = 0.125;
  target.axis_links = {{"data", {2.5e10, 4e-5}}};
  return target;
}

TEST(Target, AnAxisMayHaveLinksOfItsOwn) {
  Target target = unlike_the_default();
  EXPECT_EQ(target.link("data").bandwidth, 2.5e10);
  EXPECT_EQ(target.link("data").seconds, 4e-5);
  EXPECT_EQ(target.link("tensor").bandwidth, target.link_bandwidth);
  EXPECT_EQ(target.link("tensor").seconds, target.link_seconds);
}

TEST(Target, ParsesBackFromItsText) {
  for (const Target& target : {Target{}, unlike_the_default()}) {
    std::string text = print(target);
    EXPECT_EQ(parse_target(text), target) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << "one line";
  }
  EXPECT_NE(parse_target(print(unlike_the_default())), Target{});
}

TEST(Target, EveryMemberIsInTheTextAndNoOther) {
  std::string text = print(Target{});
  int members = 0;
  for (size_t end = text.find("\":"); end != std::string::npos; end = text.find("\":", end + 1), ++members) {
    std::string other = text;
    other[end - 1] = '?';  // the last letter of a member's name
    expect_user_error([&] { parse_target(other); }, {"[target] expected a target as this program prints it"});
  }
  EXPECT_EQ(members, 30);
  expect_user_error([&] { parse_target("{\"speed\":1," + text.substr(1)); }, {"[target]", "got 'speed' too"});
  for (std::string other : {std::string(), std::string("cpu"), std::string("[]"), text.substr(0, text.size() / 2)})
    expect_user_error([&] { parse_target(other); }, {"[target] expected"});
}

}  // namespace
}  // namespace tokamak
