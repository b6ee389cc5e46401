#include "profile/tensor_cores.h"

#include <gtest/gtest.h>

#include "tests/support/graph_text.h"

namespace tokamak {
namespace {

// Of a product (4, 16) x (16, n).
std::string use_of_product(const std::string& dtype, int n, const std::string& more = "") {
  std::string columns = std::to_string(n);
  Graph graph = test::parse("graph g {\n input a = %0 : " + dtype + "[4,16]\n input b = %1 : " + dtype + "[16," +
                            columns + "]\n %2 = matmul(%0, %1) {" + more + "trans_a=false, trans_b=false} : " + dtype +
                            "[4," + columns + "]\n result y = %2\n}");
  return tensor_core_use(graph, graph.nodes()[0]);
}

TEST(TensorCores, TakeLowOperandsAndTf32) {
  EXPECT_EQ(use_of_product("bf16", 8), "yes");
  EXPECT_EQ(use_of_product("f16", 8), "yes");
  EXPECT_EQ(use_of_product("f32", 8), "no: f32 operands");
  EXPECT_EQ(use_of_product("f32", 8, "tf32=true, "), "yes");
}

TEST(TensorCores, SayWhichSizeFeedsThemBadly) {
  EXPECT_EQ(use_of_product("bf16", 13), "yes, but n=13 is no multiple of 8");
}

TEST(TensorCores, AreForProductsAlone) {
  Graph graph = test::parse("graph g {\n input a = %0 : bf16[4]\n %1 = exp(%0) : bf16[4]\n result y = %1\n}");
  EXPECT_EQ(tensor_core_use(graph, graph.nodes()[0]), "");
}

}  // namespace
}  // namespace tokamak
