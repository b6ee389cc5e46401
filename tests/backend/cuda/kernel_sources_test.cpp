// The device code of the hand-written kernels compiles without a GPU: one variant per type for every architecture, the
// others for one.
#include "backend/cuda/adamw8bit_kernel.h"
#include "backend/cuda/embedding_kernels.h"
#include "backend/cuda/multi_add_kernel.h"
#include "backend/cuda/multi_cast_kernel.h"
#include "backend/cuda/optimizer_kernels.h"
#include "backend/cuda/strided_copy.h"
#include "backend/cuda/tensor_list.h"
#include "graph/builder.h"
#include "ops/adamw8bit.h"
#include "ops/embedding.h"
#include "ops/movement.h"
#include "tests/backend/cuda/architectures.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

using test::checked_architectures, test::expect_compiles, test::one_architecture;

// A graph of one node.
Graph one_node(const OpDef& op, const ValueTypes& inputs, const Attrs& attrs) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(g.input(fmt::format("x{}", i), inputs[i]));
  g.add(op, values, attrs);
  return graph;
}

class OfType : public ::testing::TestWithParam<DType> {};

TEST_P(OfType, CopiesCompile) {
  auto architectures = checked_architectures();
  for (Shape perm : {Shape{0, 2, 1, 3}, {3, 2, 1, 0}, {0, 1, 2, 3}}) {
    Graph graph = one_node(op::transpose, {{GetParam(), {2, 70, 12, 64}}}, {{"perm", perm}});
    CopyKernel kernel = make_copy_kernel(transpose_copy(graph, graph.nodes()[0]));
    expect_compiles(kernel.source, {kernel.name}, architectures);
    architectures = one_architecture();
  }
  Graph whole = one_node(op::transpose, {{GetParam(), {48, 64}}}, {{"perm", Shape{1, 0}}});
  CopyKernel wide = make_copy_kernel(transpose_copy(whole, whole.nodes()[0]));
  expect_compiles(wide.source, {"transpose_wide"}, checked_architectures());
  Graph graph =
      one_node(op::pad, {{GetParam(), {5, 7}}}, {{"after", int64_t(1)}, {"before", int64_t(2)}, {"dim", int64_t(1)}});
  CopyKernel kernel = make_copy_kernel(pad_copy(graph, graph.nodes()[0]));
  expect_compiles(kernel.source, {kernel.name}, checked_architectures());
}

TEST(KernelSources, TransposeOfBytesCompiles) {
  for (int64_t rows : {48, 50}) {
    Graph graph = one_node(op::transpose, {{DType::kF8E4M3, {rows, 64}}}, {{"perm", Shape{1, 0}}});
    CopyKernel kernel = make_copy_kernel(transpose_copy(graph, graph.nodes()[0]));
    expect_compiles(kernel.source, {kernel.name}, checked_architectures());
  }
}

TEST_P(OfType, EmbeddingCompiles) {
  for (int64_t cols : {768, 1}) {
    Graph graph = one_node(op::embedding, {{GetParam(), {50, cols}}, {DType::kI32, {30}}}, {});
    expect_compiles(embedding_source(graph, graph.nodes()[0]), {"embedding"},
                    cols > 1 ? checked_architectures() : one_architecture());
  }
}

TEST_P(OfType, EmbeddingGradCompiles) {
  for (int64_t cols : {1600, 1})
    for (DType base : {DType::kF32, GetParam()}) {
      ValueTypes inputs{{GetParam(), {300, cols}}, {DType::kI32, {300}}, {base, {50, cols}}};
      Graph graph = one_node(op::embedding_grad, inputs, {{"rows", int64_t(50)}});
      bool usual = cols > 1 && base == DType::kF32;
      expect_compiles(embedding_grad_source(graph, graph.nodes()[0]), {"sum_rows", "combine_runs"},
                      usual ? checked_architectures() : one_architecture());
    }
}

TEST_P(OfType, MultiCastCompiles) {
  expect_compiles(multi_cast_source(GetParam()), {"multi_cast"}, checked_architectures());
}

INSTANTIATE_TEST_SUITE_P(KernelSources, OfType, ::testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST(KernelSources, OthersCompile) {
  expect_compiles(radix_sort_source(65536, 50304), {"count_digits", "scan_counts", "place_by_digit"},
                  checked_architectures());
  expect_compiles(sum_squares_source(), {"sum_pieces", "sum_partials"}, checked_architectures());
  expect_compiles(addresses_source(), {"write_addresses"}, checked_architectures());
  for (int64_t terms : {2, 3, 7})
    expect_compiles(multi_add_source(terms), {"multi_add"}, terms == 2 ? checked_architectures() : one_architecture());
  for (double beta1 : {0.9, 0.0})
    for (DType state : {DType::kF32, DType::kBF16})
      expect_compiles(
          multi_adamw_source({{"beta1", beta1}, {"beta2", 0.95}, {"decay", 0.1}, {"decayed", Shape{1}}, {"eps", 1e-8}},
                             state),
          {"multi_adamw"}, beta1 > 0 ? checked_architectures() : one_architecture());
}

TEST(KernelSources, Adamw8bitCompiles) {
  for (DType grad : {DType::kF32, DType::kBF16, DType::kF16})
    for (int64_t columns : {768, 100}) {
      Shape shape{4, columns};
      ValueType codes = moment_codes(shape), scales = moment_scales(shape), scalar{DType::kF32, {}};
      Graph graph = one_node(
          op::adamw8bit, {{DType::kF32, shape}, {grad, shape}, codes, scales, codes, scales, scalar, scalar, scalar},
          {{"beta1", 0.9}, {"beta2", 0.95}, {"decay", 0.1}, {"eps", 1e-8}});
      bool usual = columns == 768 && grad == DType::kBF16;
      expect_compiles(adamw8bit_source(graph, graph.nodes()[0]), {"adamw8bit"},
                      usual ? checked_architectures() : one_architecture());
    }
}

TEST(KernelSources, BlocksOfSumRowsCoverAllColumns) {
  for (int64_t cols : {1, 6, 30, 768, 1024, 1600, 5000}) {
    Graph graph = one_node(op::embedding_grad, {{DType::kF32, {3, cols}}, {DType::kI32, {3}}}, {{"rows", int64_t(5)}});
    ColumnSplit split = split_columns(graph, graph.nodes()[0]);
    EXPECT_LE(split.threads, 256) << cols;
    EXPECT_EQ(split.threads % 32, 0) << cols;
    EXPECT_EQ(cols % split.vector, 0) << cols;
  }
}

TEST(KernelSources, PiecesCoverTensors) {
  std::vector<Piece> pieces = cut_into_pieces(ValueTypes{{DType::kF32, {5}}, {DType::kBF16, {40, 2}}}, 64);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].count, 5);
  EXPECT_EQ(pieces[1].count, 64);
  EXPECT_EQ(pieces[2].begin, 64);
  EXPECT_EQ(pieces[2].count, 16);
  EXPECT_EQ(pieces[2].tensor, 1);
  EXPECT_EQ(pieces[2].dtype, 1);  // kBF16 in kernels/tensor_list.cuh
}

}  // namespace
}  // namespace tokamak::cuda
