// Products in blocks of rows on the GPU, in every form that a block may have, against the whole product.
#include "ops/row_block.h"

#include "backend/ranks/inprocess.h"
#include "exec/mesh_ranks.h"
#include "passes/product_block.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/backend/cuda/matmul_forms.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

constexpr int kRanks = 3;

// The product of the case, all steps of it in place, or the rows of each rank put side by side.
Graph in_blocks(const Graph& whole, bool alone) {
  const Node& product = whole.nodes()[0];
  Graph graph("blocks");
  GraphBuilder g(graph);
  ValueIds operands;
  for (const Argument& argument : whole.arguments())
    operands.push_back(g.input(argument.name, whole.type(argument.value)));
  ValueId at = rank_coordinate(g, "tensor");
  std::shared_ptr<const Graph> block = product_block(whole, product, kRanks, {.launch_seconds = 0});
  ValueIds rows;
  for (int64_t step = 0; step < kRanks; ++step)
    if (alone)
      for (ValueId row : row_block_alone(g, block, operands, at, kRanks, step)) rows.push_back(row);
    else
      rows = row_block(g, block, operands, at, kRanks, step, rows);
  for (size_t i = 0; i < rows.size(); ++i) graph.add_result("r" + std::to_string(i), rows[i]);
  return graph;
}

HostTensor rows_of(const HostTensor& whole, int64_t rank) {
  ValueType type = whole.type;
  type.shape[0] /= kRanks;
  HostTensor rows(type);
  std::copy_n(whole.data.begin() + rank * rows.size(), rows.size(), rows.data.begin());
  return rows;
}

class GpuRowBlock : public testing::TestWithParam<DType> {};

TEST_P(GpuRowBlock, GivesTheRowsOfTheProduct) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (MatmulForm form : kMatmulForms)
    for (bool trans_b : {false, true}) {
      MatmulCase c{form, GetParam(), 1, 128 * kRanks, 64, 64, false, trans_b};
      if (!exists(c) || (form == MatmulForm::kBiasGelu && !is_low(c.dtype))) continue;
      Graph whole = matmul_graph(c), steps = in_blocks(whole, false), alone = in_blocks(whole, true);
      std::vector<HostTensor> arguments = random_arguments(whole), more = arguments;
      more.emplace_back(ValueType{DType::kI32, {}});
      std::vector<HostTensor> expected = interpret(whole, arguments).results;
      run_ranks(kRanks, [&](Communicator& world) {
        MeshRanks ranks(Mesh{{{"tensor", kRanks}}}, world);
        for (int turn = 0; turn < kRanks; ++turn) {  // one after the other: the backend is one
          world.barrier(nullptr);
          if (turn != world.rank()) continue;
          std::string what = print(steps) + " on rank " + std::to_string(turn);
          Interpretation got = run_on_gpu(steps, more, 1, false, &ranks),
                         rows = run_on_gpu(alone, more, 1, false, &ranks);
          for (size_t i = 0; i < expected.size(); ++i) {
            expect_near(got.results[i], expected[i], tolerance_of(c.dtype), what);
            for (int64_t step = 0; step < kRanks; ++step)
              expect_near(rows.results[size_t(step) * expected.size() + i],
                          rows_of(expected[i], (turn + step) % kRanks), tolerance_of(c.dtype), what);
          }
        }
      });
    }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuRowBlock, testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace tokamak::test
