#include "graph/type.h"
#include "graph/attrs.h"

#include "base/error.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Type, NamesAndSizes) {
  EXPECT_EQ(to_string(ValueType{DType::kBF16, {4, 64}}), "bf16[4,64]");
  EXPECT_EQ(to_string(ValueType{}), "f32[]");
  EXPECT_EQ(num_bytes({DType::kBF16, {3, 5}}), 30);
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(parse_dtype("f16"), DType::kF16);
  expect_user_error([] { parse_dtype("f8"); },
                    {"[dtype] expected f32, bf16, f16, i32, u8, f8e4m3 or f8e5m2, got 'f8'"});
}

TEST(Type, Broadcasts) {
  EXPECT_EQ(broadcast_shapes({2, 1, 3}, {4, 1}, "x"), (Shape{2, 4, 3}));
  EXPECT_EQ(broadcast_shapes({}, {5}, "x"), Shape{5});
  EXPECT_EQ(broadcast_strides({4, 1}, {2, 4, 3}), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(broadcast_strides({2, 3}, {2, 3}), (std::vector<int64_t>{3, 1}));
  expect_user_error(
      [] {
        broadcast_shapes({2, 3}, {4}, "here");
      },
      {"[here] expected shapes that broadcast to each other, got [2,3] and [4]"});
  EXPECT_THROW(broadcast_strides({2}, {3}), InternalError);
}

TEST(Type, RowsAndColumns) {
  EXPECT_EQ(rows_cols({2, 3, 4}).rows, 6);
  EXPECT_EQ(rows_cols({2, 3, 4}).cols, 4);
  EXPECT_EQ(rows_cols({}).cols, 1);
}

TEST(Attrs, AreSortedAndTyped) {
  Attrs attrs{{"z", int64_t(1)}, {"a", true}, {"m", 2.5}};
  EXPECT_EQ(attrs.begin()->first, "a");
  EXPECT_EQ(attrs.get_int("z"), 1);
  attrs.set("z", int64_t(4));
  EXPECT_EQ(attrs.get_int("z"), 4);
  EXPECT_EQ(attrs.get_int("missing", 9), 9);
  EXPECT_EQ(attrs.find("missing"), nullptr);
  EXPECT_THROW(attrs.get_int("missing"), InternalError);
  EXPECT_THROW(attrs.get_double("z"), InternalError);
  EXPECT_NE(attrs, (Attrs{{"a", true}}));
}

TEST(Attrs, PrintDoublesSoThatTheyStayDoubles) {
  EXPECT_EQ(to_string(Attr(1.0)), "1.0");
  EXPECT_EQ(to_string(Attr(1e-5)), "1e-05");
  EXPECT_EQ(to_string(Attr(int64_t(1))), "1");
  EXPECT_EQ(to_string(Attr(std::string("a\"b"))), "\"a\\\"b\"");
  EXPECT_EQ(to_string(Attr(std::vector<int64_t>{1, 2})), "[1,2]");
}

}  // namespace
}  // namespace tokamak
