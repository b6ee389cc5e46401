#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

TEST(RandomTensors, PositiveOnesFillTheirRange) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Graph graph;
    graph.add_argument(Argument::Kind::kInput, "x_positive", {dtype, {1000}});
    HostTensor x = random_arguments(graph)[0];
    auto [least, most] = std::minmax_element(x.data.begin(), x.data.end());
    EXPECT_GE(*least, 0.5);
    EXPECT_LT(*least, 0.51);
    EXPECT_GT(*most, 1.49);
    EXPECT_LE(*most, 1.5);
    for (double v : x.data) EXPECT_EQ(v, round_to(dtype, v));
  }
}

}  // namespace
}  // namespace tokamak::test
