#include "passes/view_slices.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::canonical;
using test::parse;

Graph viewed(const std::string& text, bool changes) {
  Graph before = parse(text), after = before;
  EXPECT_EQ(view_slices(after, {}), changes);
  verify(after);
  test::expect_same_meaning(before, after);
  return after;
}

TEST(ViewSlices, ShowsRowsOfAValueThatIsAllReadByThem) {
  std::string begin = R"(graph g {
    input x = %0 : f32[3,16]
    %1 = exp(%0) : f32[3,16]
  )";
  std::string end = R"(
    %4 = exp(%2) : f32[1,16]
    result a = %4
    result b = %3
  })";
  Graph after = viewed(begin + R"(
    %2 = slice(%1) {begin=0, dim=0, size=1} : f32[1,16]
    %3 = slice(%1) {begin=1, dim=0, size=2} : f32[2,16])" +
                           end,
                       true);
  EXPECT_EQ(print(after), canonical(begin + R"(
    %2 = slice_view(%1) {begin=0, dim=0, size=1} : f32[1,16]
    %3 = slice_view(%1) {begin=1, dim=0, size=2} : f32[2,16])" +
                                    end));
}

TEST(ViewSlices, ShowsAnyRowsOfAnArgument) {
  Graph after = viewed(R"(graph g {
    input x = %0 : f32[3,16]
    %1 = slice(%0) {begin=2, dim=0, size=1} : f32[1,16]
    result a = %1
  })",
                       true);
  EXPECT_EQ(after.nodes()[0].op->name, "slice_view");
}

// Of the value only a part would be needed, and all of it be kept.
TEST(ViewSlices, CopiesAPartOfAValue) {
  viewed(R"(graph g {
    input x = %0 : f32[3,16]
    %1 = exp(%0) : f32[3,16]
    %2 = slice(%1) {begin=0, dim=0, size=2} : f32[2,16]
    result a = %2
  })",
         false);
}

TEST(ViewSlices, CopiesWhatLiesApartOrBeginsElsewhere) {
  viewed(R"(graph g {
    input x = %0 : f32[4,32]
    input y = %1 : f32[4,8]
    %2 = slice(%0) {begin=0, dim=1, size=16} : f32[4,16]
    %3 = slice(%1) {begin=1, dim=0, size=1} : f32[1,8]
    result a = %2
    result b = %3
  })",
         false);
}

}  // namespace
}  // namespace tokamak
