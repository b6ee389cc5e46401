#include "ops/work_class.h"

#include <gtest/gtest.h>

#include "graph/op_def.h"
#include "tests/support/graph_text.h"

namespace tokamak {
namespace {

using enum WorkClass;

// Of the nodes of a graph, in order.
std::vector<WorkClass> classes(std::string_view text) {
  Graph graph = test::parse(text);
  std::vector<WorkClass> found;
  for (const Node& node : graph.nodes()) found.push_back(work_class(node));
  return found;
}

TEST(WorkClass, GoesByOpAndPhase) {
  EXPECT_EQ(classes(R"(graph step {
    input x = %0 : f32[8,4]
    param w = %1 : f32[4,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[8,4]
    %3 = exp(%2) : f32[8,4]
    %4 = transpose(%3) {perm=[1,0]} : f32[4,8]
    %5 = reduce_sum(%4) {dims=[1], keep=true} : f32[4,1]
    %6 = softmax(%3) : f32[8,4]
    %7 = all_reduce(%5) {axis="data", reduction="sum", size=2} : f32[4,1]
    %8 = mul(%1, %7) #update : f32[4,4]
    %9 = all_reduce(%8) {axis="data", reduction="sum", size=2} #update : f32[4,4]
    result y = %6
    result z = %9
  })"),
            (std::vector{kMatmul, kElementwise, kCopy, kNormalisation, kNormalisation, kCommunication, kOptimizer,
                         kCommunication}));
}

TEST(WorkClass, OfAGroupGoesByWhatItsBodyReduces) {
  EXPECT_EQ(classes(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = row(%0) : f32[2,3] { graph body {
      input a = %0 : f32[2,3]
      %1 = reduce_max(%0) {dims=[1], keep=true} : f32[2,1]
      %2 = mul(%0, %1) : f32[2,3]
      result r = %2
    } }
    result y = %1
  })"),
            std::vector{kNormalisation});
  EXPECT_EQ(classes(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = flat(%0) : f32[2,3] { graph body {
      input a = %0 : f32[2,3]
      %1 = exp(%0) : f32[2,3]
      result r = %1
    } }
    result y = %1
  })"),
            std::vector{kElementwise});
}

TEST(WorkClass, EachHasAName) {
  for (WorkClass work : kWorkClasses) EXPECT_NE(to_string(work), "");
}

}  // namespace
}  // namespace tokamak
