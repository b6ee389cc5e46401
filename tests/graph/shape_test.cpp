#include "graph/shape.h"

#include "base/error.h"

#include <gtest/gtest.h>

using namespace tokamak;

TEST(Shape, IsUsedAsAVectorIs) {
  Shape shape{2, 3};
  shape.push_back(4);
  shape.insert(shape.begin() + 1, 7);
  EXPECT_EQ(shape, (Shape{2, 7, 3, 4}));
  std::vector<int64_t> more = {8, 9};
  shape.insert(shape.begin() + 4, more.begin(), more.end());
  EXPECT_EQ(shape, (Shape{2, 7, 3, 4, 8, 9}));
  shape.erase(shape.begin() + 1);
  shape.erase(shape.begin() + 2, shape.begin() + 4);
  EXPECT_EQ(shape, (Shape{2, 3, 9}));
  EXPECT_EQ(shape.back(), 9);
  shape.resize(5, 1);
  EXPECT_EQ(shape, (Shape{2, 3, 9, 1, 1}));
  EXPECT_EQ(std::vector<int64_t>(shape), (std::vector<int64_t>{2, 3, 9, 1, 1}));
}

TEST(Shape, ComparesAsAVectorDoes) {
  EXPECT_NE(Shape{2}, (Shape{2, 1}));
  EXPECT_LT(Shape{2}, (Shape{2, 1}));
  EXPECT_LT((Shape{1, 9}), Shape{2});
  EXPECT_EQ(Shape{}, Shape());
}

TEST(Shape, RefusesMoreDimsThanItHolds) {
  Shape shape(Shape::kMaxDims, 1);
  EXPECT_THROW(shape.push_back(1), UserError);
  EXPECT_THROW(Shape(std::vector<int64_t>(9, 1)), UserError);
}
