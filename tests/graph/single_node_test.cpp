#include "graph/single_node.h"

#include "graph/text.h"
#include "ops/all_ops.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr const char* kGraph = R"(graph g {
  input x = %0 : f32[4,8]
  input w = %1 : f32[8,8]
  %2 = matmul(%0, %1) {tf32=true, trans_a=false, trans_b=false} #backward : f32[4,8]
  %3 = matmul(%2, %1) {tf32=true, trans_a=false, trans_b=false} : f32[4,8]
  %4 = matmul(%2, %1) {trans_a=false, trans_b=false} : f32[4,8]
  %5 = matmul(%1, %1) {tf32=true, trans_a=false, trans_b=false} : f32[8,8]
  result y = %3
  result z = %4
  result s = %5
})";

TEST(SingleNode, IsAGraphOfTheNodeAlone) {
  Graph graph = parse_graph(kGraph, find_op);
  EXPECT_EQ(print(single_node(graph, graph.nodes()[0])), R"(graph kernel {
  input a0 = %0 : f32[4,8]
  input a1 = %1 : f32[8,8]
  %2 = matmul(%0, %1) {tf32=true, trans_a=false, trans_b=false} : f32[4,8]
  result r0 = %2
}
)");
}

TEST(SingleNode, KeysTellKernelsApartAndNothingElse) {
  Graph graph = parse_graph(kGraph, find_op);
  auto key = [&](size_t n) { return kernel_key(graph, graph.nodes()[n]); };
  EXPECT_EQ(key(0), key(1)) << "where it stands does not matter";
  EXPECT_NE(key(1), key(2)) << "how it computes does";
  EXPECT_NE(key(1), key(3)) << "and so do the shapes";
}

}  // namespace
}  // namespace tokamak
