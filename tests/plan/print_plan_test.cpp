#include "plan/print_plan.h"

#include "graph/text.h"
#include "ops/all_ops.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tokamak {
namespace {

constexpr const char* kStep = R"(graph step {
  input x = %0 : f32[4,16]
  param w = %1 : f32[16]
  state s = %2 : f32[4,16]
  %3 = flat(%0, %1) : f32[4,16] {
    graph body {
      input x = %0 : f32[4,16]
      input w = %1 : f32[16]
      %2 = reshape(%1) {shape=[1,16]} : f32[1,16]
      %3 = mul(%0, %2) : f32[4,16]
      %4 = exp(%3) : f32[4,16]
      %5 = exp(%4) : f32[4,16]
      result y = %5
    }
  }
  %4 = reshape(%3) {shape=[64]} : f32[64]
  %5 = neg(%4) : f32[64]
  %6 = neg(%2) : f32[4,16]
  %7 = exp(%2) : f32[4,16]
  result y = %5
  result z = %7
  update %2 = %6
})";

Plan plan_of(std::string_view text) { return make_plan(parse_graph(text, find_op), {}); }

TEST(PrintPlan, Exact) {
  EXPECT_EQ(print_plan(plan_of(kStep)),
            "plan step: arena 768, parameters 64, states 256, inputs 256, scratch 0\n"
            "0 flat[mul exp*2](%0@x, %1@w) -> %3@0\n"
            "2 neg(%4@0) -> %5@0\n"
            "3 neg(%2@s) -> %6@256\n"
            "4 exp(%2@s) -> %7@512\n"
            "copy %2@s = %6@256\n");
}

TEST(PrintPlan, Stable) { EXPECT_EQ(print_plan(plan_of(kStep)), print_plan(plan_of(kStep))); }

TEST(FormatKernels, EqualKernelsShareALine) {
  std::string text = format_kernels(plan_of(R"(graph g {
    input x = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%1) : f32[16]
    %3 = exp(%2) : f32[16]
    result y = %3
  })"));
  size_t exp = text.find("\nexp "), neg = text.find("\nneg ");
  ASSERT_NE(exp, std::string::npos) << text;
  EXPECT_LT(exp, neg);  // two of them take longer
  EXPECT_EQ(text.find("\nexp ", exp + 1), std::string::npos) << text;
  EXPECT_NE(text.find("memory"), std::string::npos);
  EXPECT_NE(text.find("66.7%"), std::string::npos);
  EXPECT_NE(text.find("100.0%"), std::string::npos);
}

TEST(FormatKernels, MeasuredSecondsAreSummedOverEqualKernels) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%1) : f32[16]
    %3 = exp(%2) : f32[16]
    result y = %3
  })");
  std::string text = format_kernels(plan, 40, std::vector<double>{0.25, 4, 0.75});
  size_t neg = text.find("\nneg "), exp = text.find("\nexp ");
  EXPECT_LT(neg, exp) << "the slower ones first";
  EXPECT_NE(text.substr(exp).find("1000.000"), std::string::npos) << text;
  EXPECT_NE(text.substr(neg, exp - neg).find("4000.000"), std::string::npos) << text;
  EXPECT_NE(text.find("5000.000"), std::string::npos) << text;
  EXPECT_NE(text.find("meas. ms"), std::string::npos);
  EXPECT_EQ(format_kernels(plan).find("meas. ms"), std::string::npos);
}

// Of what a rank's streams do beside each other, too.
TEST(FormatKernels, SharesAddUp) {
  for (size_t lines : {2, 40}) {
    std::istringstream table(format_kernels(plan_of(kStep), lines));
    double sum = 0, total = 0;
    for (std::string line; std::getline(table, line) && !line.empty();) {
      size_t end = line.rfind('%');
      if (end == line.npos) continue;
      double share = std::stod(line.substr(line.rfind(' ', end)));
      (line.starts_with("total") ? total : sum) += share;
    }
    EXPECT_NEAR(sum, 100, 1e-9);
    EXPECT_EQ(total, 100);
  }
}

TEST(FormatKernels, LongTablesAreFolded) {
  std::string text = format_kernels(plan_of(kStep), 2);
  EXPECT_NE(text.find("(2 more kinds)"), std::string::npos) << text;
}

TEST(KernelLabel, Shortened) {
  Graph graph = parse_graph(kStep, find_op);
  EXPECT_EQ(kernel_label(graph.nodes()[0], 12), "flat[mul...]");
  EXPECT_EQ(kernel_label(graph.nodes()[2]), "neg");
}

}  // namespace
}  // namespace tokamak
