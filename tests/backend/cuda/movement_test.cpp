// transpose, slice, pad and concat: the strided copies on the host (no GPU needed), and the kernels on the GPU.
#include "ops/movement.h"
#include "backend/cuda/strided_copy.h"
#include "graph/builder.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

struct Move {
  const OpDef* op;
  Shape shape;
  Attrs attrs;
};

Attrs range(int64_t dim, int64_t begin, int64_t size) { return {{"begin", begin}, {"dim", dim}, {"size", size}}; }
Attrs padding(int64_t dim, int64_t before, int64_t after) {
  return {{"after", after}, {"before", before}, {"dim", dim}};
}
Attrs permuted(Shape perm) { return {{"perm", std::move(perm)}}; }

// Heads of attention there and back, matrices in whole and broken tiles, five dims, every alignment of rows.
std::vector<Move> moves() {
  return {
      {&op::transpose, {2, 70, 12, 64}, permuted({0, 2, 1, 3})},
      {&op::transpose, {2, 12, 70, 64}, permuted({0, 2, 1, 3})},
      {&op::transpose, {2, 33, 3, 5}, permuted({0, 2, 1, 3})},
      {&op::transpose, {100, 67}, permuted({1, 0})},
      {&op::transpose, {3, 64, 96}, permuted({0, 2, 1})},
      {&op::transpose, {40, 3, 50}, permuted({2, 1, 0})},
      {&op::transpose, {256, 384}, permuted({1, 0})},
      {&op::transpose, {144, 272}, permuted({1, 0})},
      {&op::transpose, {3, 16, 2, 160}, permuted({2, 3, 0, 1})},
      {&op::transpose, {3, 4, 5, 6, 7}, permuted({4, 2, 0, 3, 1})},
      {&op::transpose, {3, 4, 5, 6, 7}, permuted({1, 0, 4, 2, 3})},
      {&op::transpose, {1, 8, 1, 1}, permuted({3, 2, 1, 0})},
      {&op::slice, {6, 40, 24}, range(2, 8, 8)},
      {&op::slice, {6, 40, 24}, range(2, 7, 10)},
      {&op::slice, {6, 40, 24}, range(1, 3, 30)},
      {&op::slice, {3000, 8}, range(0, 1, 2900)},
      {&op::pad, {6, 40, 24}, padding(2, 8, 16)},
      {&op::pad, {6, 40, 24}, padding(2, 0, 3)},
      {&op::pad, {300, 17}, padding(0, 4, 0)},
      {&op::pad, {50, 17}, padding(1, 1, 2)},
      {&op::pad, {5}, padding(0, 0, 3)},
  };
}

Graph move_graph(const Move& move, DType dtype) {
  Graph graph;
  GraphBuilder g(graph);
  graph.add_result("y", g.add1(*move.op, {g.input("x", {dtype, move.shape})}, move.attrs));
  return graph;
}

cuda::StridedCopy copy_of(const Graph& graph) {
  const Node& node = graph.nodes()[0];
  if (node.op == &op::transpose) return cuda::transpose_copy(graph, node);
  return node.op == &op::slice ? cuda::slice_copy(graph, node) : cuda::pad_copy(graph, node);
}

// What the kernels do, on the host.
void run_copy(const cuda::StridedCopy& copy, const HostTensor& from, HostTensor& to) {
  std::vector<int64_t> index(copy.dims.size(), 0);
  while (true) {
    int64_t at = copy.from_offset, out = copy.to_offset, last = index.back();
    for (size_t d = 0; d < index.size(); ++d) {
      bool inner = d + 1 == index.size();
      at += (index[d] - (inner ? copy.inside_begin : 0)) * copy.dims[d].from_stride;
      out += index[d] * copy.dims[d].to_stride;
    }
    to[out] = last >= copy.inside_begin && last < copy.inside_end ? from[at] : 0.0;
    size_t d = index.size();
    while (d-- > 0) {
      if (++index[d] < copy.dims[d].size) break;
      index[d] = 0;
    }
    if (d == size_t(-1)) return;
  }
}

TEST(StridedCopy, IsTheOpWithAndWithoutMergedDims) {
  for (const Move& move : moves()) {
    Graph graph = move_graph(move, DType::kF32);
    std::vector<HostTensor> arguments = random_arguments(graph);
    HostTensor expected = interpret(graph, arguments).results[0];
    cuda::StridedCopy plain = copy_of(graph), merged = cuda::merge_dims(plain);
    EXPECT_LE(merged.dims.size(), plain.dims.size());
    for (const cuda::StridedCopy& copy : {plain, merged}) {
      HostTensor got(expected.type);
      run_copy(copy, arguments[0], got);
      EXPECT_EQ(got.data, expected.data) << print(graph);
    }
  }
}

TEST(StridedCopy, MergesWhatIsContiguous) {
  Graph heads = move_graph({&op::transpose, {2, 70, 12, 64}, permuted({0, 1, 3, 2})}, DType::kF32);
  EXPECT_EQ(cuda::merge_dims(copy_of(heads)).dims.size(), 3u);
  Graph same = move_graph({&op::transpose, {2, 1, 12, 64}, permuted({1, 0, 2, 3})}, DType::kF32);
  EXPECT_EQ(cuda::merge_dims(copy_of(same)).dims.size(), 1u);
}

// Whole units lie inside or outside, also where there is one row, whose length in the input no stride tells.
TEST(StridedCopy, UnitsEndWhereThePadBegins) {
  auto source_of = [](const Move& move) {
    return cuda::make_copy_kernel(copy_of(move_graph(move, DType::kF32))).source;
  };
  std::string odd = source_of({&op::pad, {5}, padding(0, 0, 3)});
  EXPECT_NE(odd.find("using Unit = uint32_t;"), std::string::npos) << odd;
  EXPECT_NE(odd.find("j >= Index(0) && j < Index(5)"), std::string::npos) << odd;
  std::string even = source_of({&op::pad, {8}, padding(0, 8, 16)});
  EXPECT_NE(even.find("using Unit = uint4;"), std::string::npos) << even;
  EXPECT_NE(even.find("j >= Index(2) && j < Index(4)"), std::string::npos) << even;
}

// Where input, output and every stride are multiples of 16 bytes.
TEST(StridedCopy, TurnsWholePiecesTogether) {
  auto name_of = [](const Shape& shape, const Shape& perm, DType dtype) {
    return cuda::make_copy_kernel(copy_of(move_graph({&op::transpose, shape, permuted(perm)}, dtype))).name;
  };
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3}) {
    EXPECT_EQ(name_of({3, 48, 80}, {0, 2, 1}, dtype), "transpose_wide");
    EXPECT_EQ(name_of({3, 48, 81}, {0, 2, 1}, dtype), "transpose");
    EXPECT_EQ(name_of({3, 50, 80}, {0, 2, 1}, dtype), "transpose");
    bool wide = name_of({48, 8}, {1, 0}, dtype) == "transpose_wide";
    EXPECT_EQ(wide, dtype != DType::kF8E4M3);
  }
}

TEST(GpuMovement, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const Move& move : moves())
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI32, DType::kF8E4M3}) {
      if (dtype == DType::kF8E4M3 && (move.op != &op::transpose || !has_hopper())) continue;
      Graph graph = move_graph(move, dtype);
      expect_matches_interpreter(graph, random_arguments(graph, 1, 1000), kExact);
    }
}

TEST(GpuMovement, ConcatOfManyEqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (int64_t dim : {0, 1, 2}) {
      Graph graph;
      GraphBuilder g(graph);
      ValueIds inputs;
      for (int64_t size : {8, 3, 64}) {
        Shape shape{16, 24, 40};
        shape[size_t(dim)] = size;
        inputs.push_back(g.input("x" + std::to_string(size), {dtype, shape}));
      }
      graph.add_result("y", g.add1(op::concat, inputs, {{"dim", dim}}));
      expect_matches_interpreter(graph, random_arguments(graph), kExact);
    }
}

}  // namespace
}  // namespace tokamak::test
