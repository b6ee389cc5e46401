#include "ops/group_form.h"

#include "base/error.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Parsing verifies the graph, which checks the form of groups.
Graph row_group(const std::string& kind, const std::string& dims) {
  return test::parse(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = )" + kind + R"((%0) : f32[2,3] { graph body {
        input a0 = %0 : f32[2,3]
        %1 = reduce_sum(%0) {dims=)" +
                     dims + R"(, keep=true} : f32)" + (dims == "[1]" ? "[2,1]" : "[1,3]") + R"(
        %2 = sub(%0, %1) : f32[2,3]
        result r0 = %2
      } }
    result y = %1
  })");
}

TEST(GroupForm, FindsTheSpaceOfARowGroup) {
  Graph graph = row_group("row", "[1]");
  GroupSpace space = group_space(graph.nodes()[0]);
  EXPECT_EQ(space.rows, 2);
  EXPECT_EQ(space.cols, 3);
}

TEST(GroupForm, RefusesAReductionThatTheKindDoesNotHave) {
  EXPECT_THROW(row_group("flat", "[1]"), InternalError);
  EXPECT_THROW(row_group("row", "[0]"), InternalError);
}

TEST(GroupForm, ARowGroupMaySumOverItsRows) {
  auto sums = [](const char* op, const char* last) {
    return test::parse(R"(graph g {
      input x = %0 : f32[2,3]
      %1, %2 = row(%0) : f32[2,3], f32[1,3] { graph body {
          input a0 = %0 : f32[2,3]
          %1 = reduce_sum(%0) {dims=[1], keep=true} : f32[2,1]
          %2 = sub(%0, %1) : f32[2,3]
          %3 = )" + std::string(op) +
                       R"((%2) {dims=[0], keep=true} : f32[1,3]
          %4 = neg(%3) : f32[1,3]
          result r0 = %2
          result r1 = )" +
                       last + R"(
        } }
      result y = %2
    })");
  };
  EXPECT_THROW(sums("reduce_sum", "%4"), InternalError);  // read by the body
  EXPECT_THROW(sums("reduce_max", "%3"), InternalError);
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[2,3]
    %1, %2 = row(%0) : f32[2,3], f32[1,3] { graph body {
        input a0 = %0 : f32[2,3]
        %1 = reduce_sum(%0) {dims=[1], keep=true} : f32[2,1]
        %2 = sub(%0, %1) : f32[2,3]
        %3 = reduce_sum(%2) {dims=[0], keep=true} : f32[1,3]
        result r0 = %2
        result r1 = %3
      } }
    result y = %2
  })");
  EXPECT_EQ(group_space(graph.nodes()[0]).cols, 3);
}

TEST(GroupForm, RefusesAColumnReductionThatTheBodyReads) { EXPECT_THROW(row_group("column", "[0]"), InternalError); }

TEST(GroupForm, RefusesValuesThatDoNotFitOneSpace) {
  EXPECT_THROW(test::parse(R"(graph g {
    input x = %0 : f32[2,3]
    input y = %1 : f32[6,1]
    %2, %3 = flat(%0, %1) : f32[2,3], f32[6,1] { graph body {
        input a0 = %0 : f32[2,3]
        input a1 = %1 : f32[6,1]
        %2 = neg(%0) : f32[2,3]
        %3 = neg(%1) : f32[6,1]
        result r0 = %2
        result r1 = %3
      } }
    result y = %2
  })"),
               InternalError);
}

TEST(GroupForm, RefusesAnArgumentThatNothingReads) {
  EXPECT_THROW(test::parse(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = flat(%0, %0) : f32[2,3] { graph body {
        input a0 = %0 : f32[2,3]
        input a1 = %1 : f32[2,3]
        %2 = neg(%0) : f32[2,3]
        result r0 = %2
      } }
    result y = %1
  })"),
               InternalError);
}

TEST(GroupForm, RefusesWhatIsNoGroup) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = neg(%0) : f32[2,3]
    result y = %1
  })");
  EXPECT_THROW(group_space(graph.nodes()[0]), InternalError);
}

}  // namespace
}  // namespace tokamak
