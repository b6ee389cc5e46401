// Attention on the GPU, by cuDNN and by the blocked kernels, against the op's reference.
#include "ops/attention.h"
#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/cudnn_attention.h"
#include "graph/builder.h"
#include "ops/attention_decode.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/attention_harness.h"

#include <array>
#include <set>

namespace tokamak::test {
namespace {

using cuda::AttentionPass;

constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};

// Heads 2 and 3 of 4, of the second half of a batch of 4.
const std::vector<int64_t> kPartOfHeads{2, 4, 0, 2, 2, 0};

// One token, fewer and more than a block, odd, several blocks; heads of every tile height and of odd width.
std::vector<AttentionProblem> own_problems() {
  std::vector<AttentionProblem> all;
  for (DType dtype : kFloats) {
    for (bool causal : {true, false})
      for (double dropout : {0.0, 0.2}) all.push_back(problem(2, 150, 2, 64, dtype, causal, dropout));
    for (int64_t T : {1, 7, 64, 65, 200}) all.push_back(problem(1, T, 3, 32, dtype));
    for (int64_t D : {1, 5, 20, 80, 96, 128, 256})
      all.push_back(problem(1, 70, 2, D, dtype, D != 80, D == 20 ? 0.3 : 0));
    // Documents of a few tokens up to several blocks; whole blocks of them are skipped.
    for (bool causal : {true, false}) {
      for (int64_t T : {1, 7, 65, 200, 600}) all.push_back(problem(2, T, 2, 64, dtype, causal, 0, true));
      all.push_back(problem(1, 150, 2, 20, dtype, causal, 0.2, true));
    }
    all.push_back(problem(2, 70, 2, 64, dtype, true, 0.2));
    all.back().place = kPartOfHeads;
  }
  return all;
}

TEST(GpuAttention, OwnKernelsEqualReference) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const AttentionProblem& p : own_problems())
    Example(p).check(make_blocked_attention(gpu_context(), p), make_blocked_attention_grad(gpu_context(), p));
}

// Rows of one rank of several, in chunks of one row and more, of no whole blocks and of several.
TEST(GpuAttention, OwnKernelsOfARankEqualReference) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dtype : kFloats)
    for (auto [documents, dropout] : {std::pair{false, 0.0}, {true, 0.0}, {false, 0.2}, {true, 0.2}})
      for (auto [T, ranks, rank] :
           {std::array<int64_t, 3>{2, 2, 1}, {64, 2, 0}, {150, 2, 1}, {46, 3, 1}, {128, 4, 3}, {260, 2, 0}}) {
        AttentionProblem p = of_ranks(ranks, problem(2, T, 2, 64, dtype, true, dropout, documents));
        if (T == 46) p.place = kPartOfHeads;
        Example(p, rank).check(make_blocked_attention(gpu_context(), p), make_blocked_attention_grad(gpu_context(), p));
      }
}

TEST(GpuAttention, CudnnEqualsReference) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  if (!cuda::has_cudnn()) GTEST_SKIP() << cuda::cudnn_version();
  for (DType dtype : {DType::kBF16, DType::kF16})
    for (bool causal : {true, false})
      for (auto [B, T, H, D] :
           {std::array<int64_t, 4>{2, 128, 3, 64}, {3, 256, 2, 128}, {1, 200, 2, 64}, {2, 77, 2, 80}}) {
        AttentionProblem p = problem(B, T, H, D, dtype, causal);
        ASSERT_TRUE(cudnn_supports(gpu_context(), p, AttentionPass::kForward)) << name_of(p);
        ASSERT_TRUE(cudnn_supports(gpu_context(), p, AttentionPass::kBackward)) << name_of(p);
        Example(p).check(make_cudnn_attention(gpu_context(), p), make_cudnn_attention_grad(gpu_context(), p));
      }
}

// What cuDNN cannot do as the op says it: other random numbers, f32, and heads that are no multiple of 8.
TEST(GpuAttention, CudnnLeavesTheRest) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    EXPECT_FALSE(cudnn_supports(gpu_context(), problem(2, 128, 2, 64, DType::kBF16, true, 0.1), pass));
    EXPECT_FALSE(cudnn_supports(gpu_context(), problem(2, 128, 2, 64, DType::kF32), pass));
    EXPECT_FALSE(cudnn_supports(gpu_context(), problem(2, 128, 2, 20, DType::kBF16), pass));
  }
}

// The batch runs in parts, of which each begins where the one before ended.
TEST(GpuAttention, CudnnRunsALargeBatchInParts) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  if (!cuda::has_cudnn()) GTEST_SKIP() << cuda::cudnn_version();
  constexpr int64_t kBatch = 12;
  AttentionProblem p = problem(kBatch, 4096, 4, 64, DType::kBF16), one = p;
  one.batch = 1;
  ValueType qkv{p.dtype, {kBatch, 4096, 768}}, out{p.dtype, {kBatch, 4096, 256}};
  ValueType lse{DType::kF32, {kBatch, 4, 4096}};
  std::vector<HostTensor> in{random_tensor(qkv, 1)};
  std::vector<HostTensor> forward = KernelRun(make_cudnn_attention(gpu_context(), p))(in, {out, lse});
  in.insert(in.end(), {forward[0], forward[1], random_tensor(out, 2)});
  KernelRun all(make_cudnn_attention_grad(gpu_context(), p));
  EXPECT_LT(all.workspace_bytes(), 1280 << 20);
  HostTensor whole = all(in, {qkv})[0];
  for (HostTensor& tensor : in) {  // the last sequence alone
    tensor.data.erase(tensor.data.begin(), tensor.data.end() - tensor.size() / kBatch);
    tensor.type.shape[0] = 1;
  }
  ValueType part{p.dtype, {1, 4096, 768}};
  HostTensor last = KernelRun(make_cudnn_attention_grad(gpu_context(), one))(in, {part})[0];
  HostTensor tail(part);
  std::copy(whole.data.end() - last.size(), whole.data.end(), tail.data.begin());
  expect_near(tail, last, kBf16Tolerance, "the last sequence");
}

TEST(GpuAttention, GradientIsDeterministic) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  std::vector<AttentionProblem> problems{problem(4, 1024, 12, 64, DType::kBF16), problem(16, 512, 12, 64, DType::kBF16),
                                         problem(16, 512, 12, 64, DType::kF16, true, 0, true),
                                         problem(2, 300, 4, 64, DType::kF16, true, 0.1),
                                         problem(4, 1024, 12, 64, DType::kBF16, true, 0, true)};
  if (has_hopper())
    for (int64_t head_dim : {64, 128})
      for (bool documents : {false, true}) {
        problems.push_back(problem(16, 512, 12, head_dim, DType::kBF16, true, 0, documents));
        problems.back().sums = true;
      }
  for (const AttentionProblem& p : problems) {
    ValueType qkv{p.dtype, {p.batch, p.time, 3 * p.width()}}, out{p.dtype, {p.batch, p.time, p.width()}};
    Graph graph;
    GraphBuilder g(graph);
    ValueId x = g.input("qkv", qkv), rng = g.input("rng", {DType::kI32, {2}}), dy = g.input("dout", out);
    ValueId documents = g.input("documents", {DType::kI32, {p.batch, p.time}});
    ValueIds in{x};
    if (p.dropout > 0) in.push_back(rng);
    if (p.documents) in.push_back(documents);
    AttentionProblem forward = p;
    forward.sums = false;
    ValueIds y = g.add(op::attention, in, attrs_of(forward));
    in.insert(in.begin() + 1, {y[0], y[1], dy});
    for (ValueId grad : g.add(op::attention_grad, in, attrs_of(p))) graph.add_result(fmt::format("{}", grad), grad);
    std::vector<HostTensor> arguments = random_arguments(graph);
    auto run = [&](int times, bool record) {
      std::vector<std::vector<std::byte>> bits;
      for (const HostTensor& result : run_on_gpu(graph, arguments, times, record).results)
        bits.push_back(to_storage(result));
      return bits;
    };
    auto first = run(1, false);
    for (bool record : {false, true}) EXPECT_TRUE(run(4, record) == first) << name_of(p);
  }
}

// What lay in the workspace before must not matter.
TEST(GpuAttention, CudnnGradientDoesNotReadItsWorkspace) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (AttentionProblem p : {problem(4, 128, 4, 32, DType::kBF16), problem(2, 256, 4, 64, DType::kF16)}) {
    if (!cudnn_supports(gpu_context(), p, AttentionPass::kBackward)) GTEST_SKIP() << "not supported by cuDNN";
    ValueType qkv{p.dtype, {p.batch, p.time, 3 * p.width()}}, out{p.dtype, {p.batch, p.time, p.width()}};
    ValueType lse{DType::kF32, {p.batch, p.heads, p.time}};
    std::vector<HostTensor> in{random_tensor(qkv, 1)};
    std::vector<HostTensor> forward = KernelRun(make_cudnn_attention(gpu_context(), p))(in, {out, lse});
    in.insert(in.end(), {forward[0], forward[1], random_tensor(out, 2)});
    std::vector<std::byte> first;
    for (int fill : {0x00, 0xff, 0x3c, 0x00}) {
      KernelRun run(make_cudnn_attention_grad(gpu_context(), p), fill);
      for (int i = 0; i < 3; ++i) {
        std::vector<std::byte> bytes = to_storage(run(in, {qkv})[0]);
        if (first.empty()) first = bytes;
        EXPECT_TRUE(bytes == first) << name_of(p) << " workspace filled with " << fill << ", run " << i;
      }
    }
  }
}

TEST(GpuAttention, OwnKernelsNeverStoreScores) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  AttentionProblem p = problem(2, 8192, 4, 64, DType::kBF16);
  EXPECT_EQ(make_blocked_attention(gpu_context(), p)->workspace_bytes(), 0);
  EXPECT_EQ(make_blocked_attention_grad(gpu_context(), p)->workspace_bytes(), 2 * 4 * 8192 * 4);
}

Graph decode_graph(DType dtype, DType cache, int64_t t, int64_t D, int64_t capacity = 300, int64_t window = 0) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId qkv = g.input("qkv", {dtype, {2, t, 9 * D}}), position = g.input("position", {DType::kI32, {2}});
  ValueId stored = graph.add_argument(Argument::Kind::kState, "cache", {cache, {2, capacity, 6 * D}});
  auto [out, after] = attention_decode(g, qkv, stored, position, 3, 0.3, window);
  graph.add_result("out", out);
  graph.add_update(stored, after);
  return graph;
}

TEST(GpuAttention, DecodesWithACache) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (auto [dtype, cache] : {std::pair{DType::kF32, DType::kF32},
                              {DType::kBF16, DType::kF32},
                              {DType::kBF16, DType::kBF16},
                              {DType::kF16, DType::kF16}})
    for (int64_t D : {64, 128, 20, 256})
      for (auto [t, position] : {std::pair<int64_t, int64_t>{1, 0}, {70, 0}, {1, 255}, {3, 297}}) {
        Graph graph = decode_graph(dtype, cache, t, D);
        std::vector<HostTensor> arguments = random_arguments(graph);
        arguments[1].data = {double(position), double(position / 2)};
        expect_matches_interpreter(graph, arguments);
      }
}

// More keys than one block takes: none, some or all of the later blocks have keys.
TEST(GpuAttention, DecodesWithALongCache) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (auto [first, second] : {std::pair{0, 2499}, {1023, 1024}, {2048, 1500}}) {
      Graph graph = decode_graph(dtype, dtype, 1, 64, 2500);
      std::vector<HostTensor> arguments = random_arguments(graph);
      arguments[1].data = {double(first), double(second)};
      expect_matches_interpreter(graph, arguments);
      expect_deterministic(graph, arguments);
    }
}

// It begins within a tile of keys, at its edge, and in another block than it ends.
TEST(GpuAttention, DecodesWithAWindow) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (auto [first, second] : {std::pair{100, 2499}, {699, 700}, {1100, 715}}) {
      Graph graph = decode_graph(dtype, dtype, 1, 64, 2500, 700);
      std::vector<HostTensor> arguments = random_arguments(graph);
      arguments[1].data = {double(first), double(second)};
      expect_matches_interpreter(graph, arguments);
    }
}

TEST(GpuAttention, DecodesToNanBehindTheCache) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (int64_t capacity : {300, 2500})
      for (int64_t position : {capacity, int64_t(-1)}) {
        Graph graph = decode_graph(dtype, dtype, 1, 64, capacity);
        std::vector<HostTensor> arguments = random_arguments(graph);
        arguments[1].data = {double(position), 7};
        expect_matches_interpreter(graph, arguments);
      }
  Graph graph = decode_graph(DType::kF32, DType::kF32, 2, 64);
  std::vector<HostTensor> arguments = random_arguments(graph);
  arguments[1].data = {299, -2};  // the second token of the first row, both of the second
  expect_matches_interpreter(graph, arguments);
}

class AttentionSource : public ::testing::TestWithParam<DType> {};

// Without a GPU: every variant compiles, the usual one for every architecture. Two types show what sizes do.
TEST_P(AttentionSource, Compiles) {
  for (int64_t D : {5, 64, 256}) {
    if (GetParam() == DType::kF16 && D != 64) continue;
    AttentionProblem p = problem(1, 100, 2, D, GetParam(), D != 5, D == 64 ? 0.1 : 0);
    int block = cuda::attention_block(D, 99 << 10);  // the least that a supported device has
    ASSERT_GE(block, 16);
    for (bool documents : {false, true}) {
      p.documents = documents;
      if (documents) p.place = kPartOfHeads;
      auto architectures = D == 64 && !documents ? checked_architectures() : one_architecture();
      expect_compiles(attention_source(p, block), {"attention"}, architectures);
      expect_compiles(attention_grad_source(p, block), {"attention_grad_q", "attention_grad_kv"}, architectures);
      AttentionProblem of_rank = of_ranks(2, p);
      of_rank.causal = true;
      expect_compiles(attention_source(of_rank, block), {"attention"}, one_architecture());
      expect_compiles(attention_grad_source(of_rank, block), {"attention_grad_q", "attention_grad_kv"},
                      one_architecture());
    }
    for (DType cache : std::set{DType::kF32, GetParam()})
      expect_compiles(cuda::attention_decode_source(GetParam(), cache, D),
                      {"append_to_cache", "attend_to_cache", "decode_one", "combine_splits"},
                      D == 64 ? checked_architectures() : one_architecture());
  }
}
INSTANTIATE_TEST_SUITE_P(nvrtc, AttentionSource, ::testing::ValuesIn(kFloats),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST(AttentionBlock, FitsSharedMemory) {
  EXPECT_EQ(cuda::attention_block(64, 227 << 10), 64);
  EXPECT_EQ(cuda::attention_block(256, 227 << 10), 32);
  EXPECT_EQ(cuda::attention_block(256, 99 << 10), 16);
  EXPECT_EQ(cuda::attention_block(2048, 227 << 10), 0);
}

}  // namespace
}  // namespace tokamak::test
